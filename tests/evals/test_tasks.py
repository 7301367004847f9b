"""The bundled tasks: what their files say about them is true of their repositories."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evals import task as tasks
from tools.commands import parse
from tools.git import run_git

# The programs run as on a machine that has neither a TPU nor torch_tpu.
PLAIN = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module", params=tasks.names())
def task(request: pytest.FixtureRequest) -> tasks.Task:
    return tasks.load(request.param)


@pytest.fixture(scope="module")
def checkout(task: tasks.Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return task.checkout(tmp_path_factory.mktemp("tasks") / task.name)


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=PLAIN, capture_output=True, text=True, timeout=240)


def sources(tree: Path) -> list[Path]:
    return [path for path in tree.rglob("*.py") if ".git" not in path.parts]


def test_checkout_is_a_clean_repository(checkout: Path) -> None:
    status = subprocess.run(["git", "status", "--porcelain"], cwd=checkout, capture_output=True, text=True, check=True)
    assert status.stdout == ""


def test_it_says_what_it_is(task: tasks.Task) -> None:
    assert task.name == task.folder.name
    assert task.difficulty in ("easy", "medium", "hard")
    assert len(task.uses) >= 3
    assert (task.source / "README.md").is_file()
    assert (task.source / "requirements.txt").is_file()


def test_its_entries_name_programs_that_are_there(task: tasks.Task) -> None:
    for entry in [*task.entries, task.checks.cpu_entry]:
        words = parse(entry).argv if entry else []
        for word in words:
            assert not word.endswith((".py", ".yaml")) or (task.source / word).is_file()
        if "-m" in words and words[0] == "python":
            module = task.source / words[words.index("-m") + 1].replace(".", "/")
            assert module.is_dir() or module.with_suffix(".py").is_file()


def test_numbers_are_held_to_two_percent_or_less(task: tasks.Task) -> None:
    assert 0 < task.checks.tolerance <= 0.02
    assert task.checks.numbers >= 2


def test_an_entry_fails_without_cuda_or_has_a_way_to_ask_for_the_cpu(task: tasks.Task) -> None:
    assert task.baseline.fails_without_cuda or task.checks.cpu_entry


def test_the_migration_by_hand_applies(task: tasks.Task, checkout: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    run_git(tmp_path, "clone", "--quiet", str(checkout), str(tree), private=True)
    run_git(tree, "apply", "--whitespace=nowarn", str(task.reference), private=True)
    for path in sources(tree):
        ast.parse(path.read_text(encoding="utf-8"))
    for path in tree.rglob("*.ipynb"):
        json.loads(path.read_text(encoding="utf-8"))


def test_the_hidden_program_parses(task: tasks.Task) -> None:
    if task.hidden.is_file():
        assert ast.get_docstring(ast.parse(task.hidden.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_the_entry_fails_without_cuda(task: tasks.Task, checkout: Path) -> None:
    argv = parse(task.entries[0]).argv
    words = ["-m", "torch.distributed.run", *argv[1:]] if argv[0] == "torchrun" else argv[1:]
    done = python(*words, cwd=checkout)
    if not task.baseline.fails_without_cuda:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode != 0
    assert re.search(task.baseline.fails_without_cuda, done.stderr)


@pytest.mark.slow
def test_its_own_tests_pass_on_a_cpu(task: tasks.Task, checkout: Path) -> None:
    if not task.baseline.own_tests:
        pytest.skip("it has no tests")
    done = python("-m", *task.baseline.own_tests.split(), "-q", "-p", "no:cacheprovider", cwd=checkout)
    assert done.returncode == 0, done.stdout
