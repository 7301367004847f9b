"""Broken programs, what the rules make of them, and runs of both in one child process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tools.engine import examine, fix
from tools.project import TextProject
from tools.rules import all_rules

ROOT = Path(__file__).resolve().parents[2]
CUDA_BUILD = not importlib.metadata.version("torch").endswith("+cpu")


@dataclass(frozen=True)
class Shown:
    """A row of tools/coverage.toml with a program that fails that way.

    Attributes:
        row: its id.
        rules: rules that must find it.
        broken: the program; what it computes is in ``result``.
        fixed: the program after the fixes, None where it is only reported.
        before: what the broken program gives when it runs: ``Type: message`` or the result; several where torch's
            builds word it differently.
        after: what the fixed one gives.
        by_hand: what a person makes of a program that is only reported.
        unsafe: whether the fix is an unsafe one.
        on: where the runs show it.
        setup: what is there before the program starts: stand-ins for packages, files.
        cpu_build: whether only torch's CPU build shows it: its CUDA build names an accelerator even without a GPU.
    """

    row: str
    rules: tuple[str, ...]
    broken: str
    fixed: str | None
    before: str | tuple[str, ...] = ""
    after: str = ""
    by_hand: str | None = None
    unsafe: bool = False
    on: Literal["tpu", "cpu"] = "tpu"
    setup: str = ""
    cpu_build: bool = False


def migrated(text: str, *, unsafe: bool = False) -> str:
    """A program after all rules, applied as a migration applies them."""
    data = text.encode()
    for _ in range(6):
        before = data
        for rule in all_rules():
            data = fix("train.py", data, TextProject(Path(), texts={"train.py": data}), [rule], unsafe=unsafe).data
        if data == before:
            return data.decode()
    raise AssertionError("the rules do not come to rest")


def found(text: str) -> set[str]:
    """The rules with a finding in a program."""
    data = text.encode()
    seen = examine("train.py", data, TextProject(Path(), texts={"train.py": data}), all_rules())
    assert not seen.skipped
    return {rule.ID for rule, _ in seen.matches}


def check_text(case: Shown) -> None:
    """The rules find the row, and make of the program what is written here."""
    assert set(case.rules) <= found(case.broken)
    assert migrated(case.broken, unsafe=case.unsafe) == (case.broken if case.fixed is None else case.fixed)


_CHILD = """
import json, os, sys
programs = json.load(open(sys.argv[1]))
if sys.argv[2] == "tpu":
    from torchtpu.device import bring_up, choose
    bring_up(choose("simulated"))
import torch
said = []
for setup, program in programs:
    known = dict(sys.modules)
    try:
        names = {"__name__": "__main__"}
        exec(compile(setup, "setup", "exec"), names)
        exec(compile(program, "program", "exec"), names)
        said.append(str(names.get("result")))
    except Exception as error:
        kind = type(error)
        home = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
        said.append(f"{home}{kind.__qualname__}: {error}")
    # Stand-ins go; a real package (Triton comes with torch's CUDA build) stays, as it can't be imported twice.
    for name in [name for name, module in sys.modules.items() if getattr(module, "__spec__", None) is None]:
        if name.partition(".")[0] in ("flash_attn", "xformers", "triton", "torchvision", "torch_xla"):
            del sys.modules[name]
            if name in known:
                sys.modules[name] = known[name]
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
json.dump(said, open(sys.argv[3], "w"))
sys.stdout.flush()
os._exit(0)
"""


def run(programs: Sequence[tuple[str, str]], on: Literal["tpu", "cpu"], folder: Path) -> list[str]:
    """What each program gives, all of them in one child process.

    Args:
        programs: set-up and program each.
        on: the simulated TPU, or no accelerator at all.
        folder: for the files that go in and out.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TPU_SKIP_MDS_QUERY": "1"}
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if on == "tpu":
        device = pytest.importorskip("torchtpu.device")
        try:
            environment |= device.environment(device.choose("simulated"))
        except device.DeviceError as missing:
            pytest.skip(str(missing))
    (folder / "programs.json").write_text(json.dumps(programs))
    arguments = [sys.executable, "-c", _CHILD, str(folder / "programs.json"), on, str(folder / "said.json")]
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    said: list[str] = json.loads((folder / "said.json").read_text())
    return said


def check_runs(cases: Sequence[Shown], on: Literal["tpu", "cpu"], folder: Path) -> None:
    """Each broken program fails as its row says, and the fixed one does not."""
    shown = [case for case in cases if case.on == on and case.before and not (case.cpu_build and CUDA_BUILD)]
    programs = []
    for case in shown:
        programs += [(case.setup, case.broken), (case.setup, case.by_hand or case.fixed or case.broken)]
    said = run(programs, on, folder)
    wrong = []
    for number, case in enumerate(shown):
        before, after = said[2 * number], said[2 * number + 1]
        expected = (case.before,) if isinstance(case.before, str) else case.before
        if not any(text in before for text in expected):
            wrong.append(f"{case.row} broken: {before[:300]!r}, not {case.before!r}")
        if after != case.after:
            wrong.append(f"{case.row} fixed: {after[:300]!r}, not {case.after!r}")
    assert not wrong, "\n".join(wrong)
