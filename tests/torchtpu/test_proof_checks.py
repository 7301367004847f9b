"""What rounding alone may change is no fault: when a search stops, and which output carries a gradient."""

from __future__ import annotations

import base64
import struct
from typing import Any

from torchtpu.proof.checks import gradients, training
from torchtpu.proof.compare import Figures, Sides
from torchtpu.proof.ratio import FLOAT32
from torchtpu.proof.recording import Gradient, Loss, Recording, Snapshot, Step, Tensor


def tensor(norm: float, crc: int) -> Tensor:
    whole = base64.b64encode(struct.pack("d", norm)).decode()
    kind: dict[str, Any] = {"shape": [1], "dtype": "float32", "device": "cpu", "odd": 0, "crc": crc, "whole": whole}
    return Tensor({**kind, "norm": abs(norm), "low": norm, "high": norm})


def step() -> Step:
    return Step(1, 0, 1, "LBFGS", [], 1.0, [], {}, ["cpu"])


def searched(closures: int) -> Recording:
    return Recording(steps=[step()], losses=[Loss(1, n, 1.0, "float32", "cpu") for n in range(closures)])


def messages(jitters: list[int], candidate: int) -> list[str]:
    sides = Sides(searched(20), [searched(n) for n in jitters], searched(candidate), FLOAT32)
    return [problem.message for problem in training._steps(sides)]


def test_a_search_that_rounding_ends_may_end_elsewhere() -> None:
    assert messages([20, 20], 15) == [
        "gradients are asked for 20 times in the original, 15 times in the migrated program"
    ]
    assert messages([20, 17], 15) == []


def passed_back(*values: float) -> Recording:
    return Recording(
        gradients=[Gradient("Net.cell", 1, str(n), 1, 1, tensor(v, hash(v))) for n, v in enumerate(values)]
    )


def off(*values: float) -> bool:
    reference = passed_back(1.0, 2.0)
    sides = Sides(reference, [passed_back(1.0 + 1e-7, 2.0)], passed_back(*values), FLOAT32)
    return bool(list(gradients._inner(sides, Figures())))


def test_what_passes_from_one_output_through_another_is_no_difference() -> None:
    assert not off(1.0, 3.0)
    assert off(1.5, 3.0)


def shot(count: int, name: str, value: float) -> Snapshot:
    return Snapshot(0, count, {name: tensor(value, hash(value))}, {}, {}, [], [], [])


def test_parameters_that_have_no_name_at_first_are_seen_to_move() -> None:
    made = Recording(snapshots=[shot(0, "optimizer0.0.0", 1.0), shot(1, "Net.w", 1.5), shot(20, "Net.w", 2.0)])
    still = Recording(snapshots=[shot(0, "optimizer0.0.0", 1.0), shot(1, "Net.w", 1.0), shot(20, "Net.w", 1.0)])
    assert list(training._moves(Sides(made, [], made, FLOAT32))) == []
    assert [p.kind for p in training._moves(Sides(still, [], still, FLOAT32))] == ["degenerate"]
    assert [p.message for p in training._moves(Sides(made, [], still, FLOAT32))] == [
        "Net.w never moves, unlike in the original"
    ]
