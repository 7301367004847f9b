"""What must hold of the fixes of any program: they rest, and keep the rest of the file, names and numbers."""

from __future__ import annotations

import ast
import io
import json
import os
import random
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.tools.programs import Program, programs
from tools.engine import fix
from tools.project import TextProject
from tools.rules import all_rules
from tools.rules.base import Rule

# Runs the programs it is sent, one a line, and answers with a digest of all they computed.
_RUNNER = """
import hashlib, io, json, os, sys, tempfile, warnings
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch

def canonical(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), str(value.device), value.detach().double().tolist()]
    if isinstance(value, (list, tuple)):
        return [canonical(v) for v in value]
    return str(value)

warnings.simplefilter("ignore")
answers = sys.stdout
sys.stdout = sys.stderr
for line in sys.stdin:
    text = json.loads(line)
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    with tempfile.TemporaryDirectory() as folder:
        names = {"path": folder + "/file.pt", "__name__": "program"}
        try:
            exec(compile(text, "program", "exec"), names)
            answer = {key: canonical(value) for key, value in names["result"].items()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[subprocess.Popen[str]]:
    """A plain Python process on the CPU that runs programs."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("compares runs on the CPU")
    process = subprocess.Popen(
        [sys.executable, "-c", _RUNNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"},
    )
    yield process
    process.kill()
    process.wait()


def computed(machine: subprocess.Popen[str], text: str) -> dict[str, object]:
    assert machine.stdin and machine.stdout
    machine.stdin.write(json.dumps(text) + "\n")
    machine.stdin.flush()
    return json.loads(machine.stdout.readline())  # type: ignore[no-any-return]


def fixed(text: str, rules: list[Rule]) -> str:
    data = text.encode()
    result = fix("program.py", data, TextProject(Path(), texts={"program.py": data}), rules)
    assert not result.skipped, result.skipped
    return result.data.decode()


def complaints(text: str) -> list[str]:
    """What ruff says of names: undefined, unused, bound twice."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--select=F401,F811,F821,F823,F841",
            "--output-format=json",
            "-",
        ],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    # A message may name another line, which a fix moves.
    return sorted(found["code"] + " " + _LINE.sub("line", found["message"]) for found in json.loads(done.stdout))


_LINE = re.compile(r"\bline \d+")


def comments(text: str) -> list[str]:
    return [
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]


def in_order(needles: tuple[str, ...], rows: list[str]) -> bool:
    remaining = iter(rows)
    return all(any(needle in row for row in remaining) for needle in needles)


_MANY = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@_MANY
@given(programs())
def test_numbers_on_the_cpu_stay(machine: subprocess.Popen[str], program: Program) -> None:
    new = fixed(program.text, all_rules())
    before = computed(machine, program.text)
    assert "error" not in before, (before, program.text)
    note(new)
    assert computed(machine, new) == before


@_MANY
@given(programs())
def test_a_second_time_changes_nothing(program: Program) -> None:
    once = fixed(program.text, all_rules())
    ast.parse(once)
    note(once)
    assert fixed(once, all_rules()) == once


@_MANY
@given(programs())
def test_what_no_rule_is_about_survives(program: Program) -> None:
    new = fixed(program.text, all_rules())
    note(new)
    assert comments(new) == comments(program.text)
    assert in_order(program.plain, new.split("\n"))


@_MANY
@given(programs())
def test_no_name_is_left_undefined_or_unused(program: Program) -> None:
    new = fixed(program.text, all_rules())
    note(new)
    known = complaints(program.text)
    assert [said for said in complaints(new) if said not in known] == []


@_MANY
@given(programs(), st.randoms(use_true_random=False))
def test_the_order_of_the_rules_does_not_matter(program: Program, rng: random.Random) -> None:
    rules = list(all_rules())
    rng.shuffle(rules)
    assert fixed(program.text, rules) == fixed(program.text, all_rules())
