"""Distances told from sketches, and what a sketch says about a tensor."""

from __future__ import annotations

import json
import math

import pytest
import torch

from torchtpu.proof.recording import Tensor
from torchtpu.proof.sketch import WHOLE, Sketcher, sketch


def read(tensor: torch.Tensor) -> Tensor:
    return Tensor(json.loads(json.dumps(sketch(tensor))))


def between(a: torch.Tensor, b: torch.Tensor) -> float:
    return read(a).distance(read(b))


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def column(shape, number):
    added = torch.zeros(shape)
    added[..., number] = 1.0
    return added


@pytest.mark.parametrize(
    "added",
    [
        drawn(700, 512) * 1e-6,
        torch.full((700, 512), 1e-3),
        column((700, 512), 5),
        column((512, 700), 3).T.contiguous(),
        torch.nn.functional.one_hot(torch.arange(700) % 512, 512).float(),
    ],
    ids=["noise", "shift", "column", "row", "diagonal"],
)
def test_the_distance_of_large_tensors_is_estimated(added):
    base = drawn(*added.shape)
    # What is added must survive the rounding of the sum.
    moved = (base.double() + added.double()).float()
    true = float((moved.double() - base.double()).norm())
    assert between(base, moved) == pytest.approx(true, rel=0.35)


def test_the_estimate_is_right_on_average():
    base = drawn(20, WHOLE)
    ratios = []
    for seed in range(20):
        added = torch.randn(base.shape, generator=torch.Generator().manual_seed(seed)) * 1e-3
        ratios.append(between(base, base + added) / float((base + added - base).norm()))
    assert sum(ratios) / len(ratios) == pytest.approx(1.0, abs=0.05)


def test_the_distance_of_small_tensors_is_exact():
    a, b = drawn(64), drawn(64) + 1e-7
    assert between(a, b) == pytest.approx(float((a.double() - b.double()).norm()), rel=1e-12)


def test_equal_bytes_have_no_distance_and_other_shapes_an_infinite_one():
    a = drawn(9000)
    assert between(a, a.clone()) == 0.0
    assert math.isinf(between(a, a.view(90, 100)))
    assert math.isinf(between(torch.arange(5), torch.arange(1, 6)))


def test_values_that_are_not_finite_are_counted_and_left_out():
    a = torch.tensor([1.0, math.nan, math.inf, 2.0])
    seen = read(a)
    assert (seen.odd, seen.norm) == (2, pytest.approx(math.sqrt(5)))
    assert math.isinf(seen.distance(read(torch.tensor([1.0, 0.0, 0.0, 2.0]))))


@pytest.mark.parametrize(
    ("tensor", "why"),
    [
        (torch.zeros(3), "zero"),
        (torch.ones(3), "constant"),
        (torch.full((3,), math.nan), "not finite"),
        (torch.tensor(1.0), None),
        (torch.arange(3.0), None),
        (torch.zeros(0), None),
    ],
)
def test_what_would_prove_nothing(tensor, why):
    assert read(tensor).degenerate == why


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64, torch.float64])
def test_other_kinds_of_numbers(dtype):
    a = drawn(5000).to(dtype)
    b = a.clone()
    b[7] += 1
    assert between(a, b) == pytest.approx(1.0, rel=0.05)


def test_a_tensor_that_did_not_change_is_sketched_once():
    sketcher, a = Sketcher(), drawn(4)
    first = sketcher(a)
    assert sketcher(a) == {"is": first["number"]}
    a.add_(1)
    assert sketcher(a)["number"] == first["number"] + 1
    assert "crc" in sketcher(a.clone())
