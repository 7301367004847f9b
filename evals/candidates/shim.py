"""An alias at run time, in the way that other accelerators offer one: `torch.cuda` means the TPU, the source stays.

The shim is imported by one line at the head of every program that an entry starts. It claims that it runs if it ends
with 0.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from evals.candidates.answer import Answer, Limits
from evals.scorers.running import ends_well
from evals.task import Task
from tools.commands import parse

_NAME = "cuda_means_tpu"
_SHIM = """
import functools
import torch

_tpu = torch.accelerator


def _device(value):
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return value.replace("cuda", "tpu", 1)
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("tpu", value.index)
    return value


def _renamed(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*map(_device, args), **{name: _device(value) for name, value in kwargs.items()})

    return call


for _owner, _names in (
    (torch, "zeros ones empty full rand randn randint arange eye tensor as_tensor linspace randperm load".split()),
    (torch.Tensor, ["to"]),
    (torch.nn.Module, ["to"]),
    (torch.amp, ["autocast", "GradScaler"]),
):
    for _name in _names:
        _old = getattr(_owner, _name)
        if isinstance(_old, type):
            _new = type(_name, (_old,), {})
            _new.__init__ = _renamed(_old.__init__)
            setattr(_owner, _name, _new)
        else:
            setattr(_owner, _name, _renamed(_old))
torch.Tensor.cuda = lambda self, device=None, non_blocking=False: self.to("tpu", non_blocking=non_blocking)
torch.nn.Module.cuda = lambda self, device=None: self.to("tpu")
torch.autocast = torch.amp.autocast
torch.cuda.is_available = _tpu.is_available
torch.cuda.device_count = _tpu.device_count
torch.cuda.current_device = _tpu.current_device_index
torch.cuda.set_device = lambda device: None
torch.cuda.synchronize = lambda device=None: _tpu.synchronize()
torch.cuda.empty_cache = lambda: None
# torch.manual_seed seeds the TPU too, and calls these.
torch.cuda.manual_seed = torch.cuda.manual_seed_all = lambda seed: None
torch.cuda.max_memory_allocated = torch.cuda.memory_allocated = lambda device=None: 0
torch.cuda.reset_peak_memory_stats = lambda device=None: None
torch.cuda.get_device_name = lambda device=None: "TPU"
"""


def migrate(task: Task, checkout: Path, place: Path, limits: Limits) -> Answer:
    """Put the shim beside every program that an entry names, and its import into the program's first line."""
    tree = Path(shutil.copytree(checkout, place / "tree", symlinks=True))
    programs = {word for entry in task.entries for word in parse(entry).argv if word.endswith(".py")}
    for name in sorted(programs):
        path = tree / name
        if path.is_file():
            (path.parent / f"{_NAME}.py").write_text(_SHIM.lstrip(), encoding="utf-8")
            path.write_text(_with_import(path.read_text(encoding="utf-8")), encoding="utf-8")
    return Answer(tree=tree, claims=["runs"] if ends_well(task, tree, place / "claim", limits) else [])


def _with_import(text: str) -> str:
    # A program's docstring and its imports from __future__ have to come first.
    lines = text.splitlines(keepends=True)
    at = max((i + 1 for i, line in enumerate(lines) if line.startswith("from __future__")), default=0)
    return "".join([*lines[:at], f"import {_NAME}  # noqa\n", *lines[at:]])
