"""No public name of torch.cuda is undecided, and what is called harmless is."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import pytest

from tools.code.cuda_api import API, HOMES, Kind, canonical, handled_by
from tools.rules import all_rules

torch = pytest.importorskip("torch")

_HELPERS = frozenset(
    "Any Callable DEVICE_REQUIREMENT NewType Optional PYTORCH_RELEASES_CODE_CC TYPE_CHECKING cast classproperty "
    "lru_cache".split()
)
"""Names that torch.cuda imports or keeps for its own code."""


def public(module: types.ModuleType) -> set[str]:
    names = {name for name in dir(module) if not name.startswith("_")}
    foreign = {
        name
        for name in names
        if isinstance(value := getattr(module, name), types.ModuleType) and not value.__name__.startswith("torch.cuda.")
    }
    return names - foreign - _HELPERS


def test_every_public_name_is_decided() -> None:
    assert public(torch.cuda) - API.keys() == set()
    assert set(torch.cuda.__all__) - API.keys() == set()


@pytest.mark.parametrize("package", ["nvtx", "profiler", "nccl", *HOMES])
def test_every_function_below_is_decided(package: str) -> None:
    module = getattr(torch.cuda, package)
    own = {
        name
        for name in public(module)
        if inspect.isfunction(inspect.unwrap(value := getattr(module, name)))
        and getattr(value, "__module__", "") == module.__name__
    }
    assert {name for name in own if canonical(f"torch.cuda.{package}.{name}") is None} == set()


def test_decisions_name_rules_that_exist() -> None:
    known = {rule.ID for rule in all_rules()}
    assert {decision.rule for decision in API.values() if decision.rule} <= known


@pytest.mark.parametrize("kind", Kind)
def test_every_decision_has_a_reason(kind: Kind) -> None:
    decisions = [decision for decision in API.values() if decision.kind == kind]
    assert decisions and all(decision.note for decision in decisions)


def test_same_function_under_its_home() -> None:
    assert canonical("torch.cuda.memory.max_memory_allocated") == "max_memory_allocated"
    assert canonical("torch.cuda.nvtx.range") == "nvtx.range"
    assert canonical("torch.cuda.no_such_name") is None
    assert canonical("numpy.cuda.Stream") is None
    assert "set_device" in handled_by("TPU201")


_CALLS = """
import torch
torch.cuda.is_available = lambda: False
torch.cuda.manual_seed(1); torch.cuda.manual_seed_all(1); torch.cuda.seed(); torch.cuda.seed_all()
torch.cuda.empty_cache()
assert isinstance(torch.cuda.get_arch_list(), list) and not torch.cuda.is_initialized()
with torch.cuda.device_of(torch.ones(1)), torch.cuda.stream(None):
    torch.cuda.set_stream(None)
torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
"""


def test_harmless_calls_do_nothing_without_cuda() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _CALLS], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
