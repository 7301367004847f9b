"""The deviation that sums are moved by is the one that adding up one after another has."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchtpu.proof.sums import Sums, relative, steps

ROOT = Path(__file__).resolve().parents[2]


def one_after_another(terms: torch.Tensor) -> torch.Tensor:
    """Float32 sums over the rows of a matrix, a row at a time."""
    total = torch.zeros(terms.shape[1])
    for row in terms:
        total = total + row
    return total


@pytest.mark.parametrize("kind", ["one sign", "both signs", "cancelling"])
def test_deviation_is_that_of_adding_up(kind: str) -> None:
    made = torch.Generator().manual_seed(3)
    terms = torch.rand(1000, 512, generator=made)
    if kind != "one sign":
        terms = terms - 0.5
    if kind == "cancelling":
        terms = terms - terms.mean(0)
    exact = terms.double().sum(0)
    summed = one_after_another(terms)
    seen = float((summed.double() - exact).square().mean().sqrt())
    # Eight times as many terms, since that many lanes share them.
    moved = Sums(torch).error(summed, terms.square().sum(0), 8 * len(terms))
    said = float(moved.square().mean().sqrt())
    assert 0.6 < said / seen < 1.7


def test_each_element_moves_by_one_deviation_and_the_same_way_again() -> None:
    sums = Sums(torch)
    total, square = torch.full((300,), 3.0), torch.full((300,), 2.0)
    once, again = sums.error(total, square, 800), sums.error(total, square, 800)
    assert torch.equal(once, again)
    assert torch.allclose(once.abs(), torch.tensor(2.0**-24 * math.sqrt(100 * (1.0 + 2.0 / 18.0))))
    assert 100 < int((once > 0).sum()) < 200


def test_few_terms_move_by_less_than_a_last_bit() -> None:
    assert steps(3) == 1.0
    assert relative(3, torch.float32) < 2.0**-24 < relative(1000, torch.float32)


PROGRAM = """
import sys, torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 4, 3), nn.LayerNorm(8), nn.Flatten(1, 2),
    nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), nn.Flatten(), nn.Linear(256, 5),
)
given, classes = torch.randn(64, 3, 8, 8), torch.arange(64) % 5


def numbers(model, given):
    model.zero_grad()
    loss = F.cross_entropy(model(given), classes)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    return [loss.detach(), norm, *(p.grad.clone() for p in model.parameters())]


before, wide = numbers(model, given), numbers(model.double(), given.double())
from torchtpu.proof import sums
sums.install(torch)
model.float()
moved, still = numbers(model, given), numbers(model.double(), given.double())
assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in zip(wide, still)), "float64 moves by less"
names = ["loss", "norm", *(name for name, _ in model.named_parameters())]
for name, a, b in zip(names, before, moved):
    apart = float((a.double() - b.double()).norm() / a.double().norm())
    # A constant that a normalisation takes away has a gradient of nothing but rounding.
    limit = 1e-5 if name not in ("0.bias", "3.bias") else 100.0
    assert 0.0 < apart < limit or name == "loss", (name, apart)
"""


def test_a_program_in_float32_moves_a_little() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
