"""What must hold of a migrated tree besides the stages that `migrate` reports."""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.patch import patch_steps

OURS = frozenset(["torchtpu", "torchtpu_agent"])
# Numbers that the program prints about what it computed, not about how long it took.
MEASURE = re.compile(r"\b(?:loss|ppl|norm|Loss_[DG]|Acc\w*)\b[^0-9\n-]{0,12}(-?\d+\.\d+(?:e[+-]\d+)?)", re.I)


def tpu_names(tree: Path) -> list[str]:
    """Places of the tree that use `torch.tpu`: most of it raises, and no other accelerator has it."""
    return [
        f"{path.relative_to(tree)}:{node.lineno} torch.tpu.{node.attr}"
        for path, node in sorted(_nodes(tree), key=lambda item: (item[0], getattr(item[1], "lineno", 0)))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "torch.tpu"
    ]


def our_imports(tree: Path) -> list[str]:
    """Places of the tree that import this project."""
    found = []
    for path, node in _nodes(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        found += [f"{path.relative_to(tree)} {n}" for n in names if n.split(".")[0] in OURS]
    return found


def second_migration(tree: Path) -> list[str]:
    """Rules that still want to change the migrated tree; none may."""
    return [step.rule for step in patch_steps(tree)]


def run_on_cpu(command: str, folder: Path, python: Path, time_limit: float) -> tuple[int | None, str]:
    """Run a program where torch_tpu is not loaded; return its exit code (None: time limit) and output."""
    words = shlex.split(command)
    words = [str(python) if word in ("python", "python3") else word for word in words]
    plain = {
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "PYTHONUNBUFFERED": "1",
    }
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=plain,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=time_limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def measures(output: str) -> list[float]:
    """The losses and accuracies in a program's output, in order."""
    return [float(number) for number in MEASURE.findall(output)]


def _nodes(tree: Path) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(tree.rglob("*.py")):
        if ".git" in path.parts:
            continue
        try:
            module = ast.parse(path.read_bytes())
        except SyntaxError:
            continue
        for node in ast.walk(module):
            yield path, node
