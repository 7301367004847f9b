"""Programs that ran on the CPU compute the same numbers after the safe fixes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.engine import fix
from tools.project import TextProject
from tools.rules import all_rules

_TRAIN = """
import torch
import torch.nn as nn
from torch.cuda.amp import autocast, GradScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.DataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = GradScaler()
loader = DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4, pin_memory=True)
for x, y in loader:
    x, y = x.to(device, non_blocking=True), y.to(device)
    optimizer.zero_grad()
    with autocast():
        loss = ((model(x) - y) ** 2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.module.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
result = {"model": model.state_dict(), "scaler": scaler.state_dict(), "dtype": loss.dtype}
"""

_FUNCTION = """
import torch
from torch.cuda.amp import custom_fwd, custom_bwd

class Square(torch.autograd.Function):
    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @custom_bwd
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient

x = torch.arange(3.0, requires_grad=True)
with torch.autocast("cuda", dtype=torch.float16):
    y = Square.apply(x)
y.sum().backward()
result = {"y": y.detach(), "gradient": x.grad}
"""

_CHECKPOINT = """
import io
import torch
model = torch.nn.Linear(2, 2)
torch.manual_seed(1)
buffer = io.BytesIO()
torch.save(torch.nn.Linear(2, 2).state_dict(), buffer)
buffer.seek(0)
model.load_state_dict(torch.load(buffer))
buffer.seek(0)
other = torch.load(buffer, map_location={"cuda:0": "cuda:1"})
t = model.weight.detach()
array = t.cpu().numpy() if t.device.type == "cuda" else t.numpy()
result = {"weight": model.weight, "other": other["weight"], "array": torch.from_numpy(array)}
"""

_TYPE_CHOICE = """
import torch
backend = "nccl" if torch.cuda.is_available() else "gloo"
if torch.cuda.is_available():
    other_backend = "nccl"
else:
    other_backend = "gloo"
context = torch.autocast("cpu")
with context:
    y = torch.ones(2, 2) @ torch.ones(2, 2)
result = {"backend": backend, "other": other_backend, "y": y}
"""


PROGRAMS = {"train": _TRAIN, "function": _FUNCTION, "checkpoint": _CHECKPOINT, "choice": _TYPE_CHOICE}

_RUNNER = """
import io, json, sys, warnings
import torch

if torch.accelerator.is_available():
    json.dump("accelerator", sys.stdout)
    sys.exit()
answers = {}
for name, text in json.load(sys.stdin).items():
    names = {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(compile(text, name, "exec"), names)
    buffer = io.BytesIO()
    torch.save(names["result"], buffer)
    answers[name] = [buffer.getvalue().hex(), [str(w.message) for w in seen]]
json.dump(answers, sys.stdout)
"""


def fixed(text: str) -> str:
    data = text.encode()
    for _ in range(3):
        for rule in all_rules():
            data = fix("program.py", data, TextProject(Path(), texts={"program.py": data}), [rule]).data
    return data.decode()


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[str, list[str]]]:
    """What each program saves, and the warnings it gives, before and after, from one plain Python process."""
    pytest.importorskip("torch")
    texts = PROGRAMS | {f"{name} fixed": fixed(text) for name, text in PROGRAMS.items()}
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    if result == "accelerator":
        pytest.skip("compares runs on the CPU")
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_on_the_cpu_stay(name: str, answers: dict[str, tuple[str, list[str]]]) -> None:
    assert fixed(PROGRAMS[name]) != PROGRAMS[name]
    assert answers[f"{name} fixed"][0] == answers[name][0]


def test_fixed_program_no_longer_warns_about_cuda(answers: dict[str, tuple[str, list[str]]]) -> None:
    about_cuda = re.compile("CUDA is not available|deprecated|no accelerator")
    assert [w for w in answers["train"][1] if about_cuda.search(w)]
    assert not [w for w in answers["train fixed"][1] if about_cuda.search(w)]
