"""Where a difference is placed, on recordings made by hand."""

from __future__ import annotations

import pytest
import torch

from torchtpu.proof.checks import forward, gradients, training
from torchtpu.proof.compare import GRADIENTS, Comparison, Sides
from torchtpu.proof.ratio import FLOAT32, LOW
from torchtpu.proof.recording import Call, Loss, Recording, Step, Tensor
from torchtpu.proof.sketch import sketch

PLACES = {
    "backward": {"called": {"file": "train.py", "line": 8}},
    "step": {"called": {"file": "train.py", "line": 10}},
    "optimizer 0": {"called": {"file": "setup.py", "line": 3}},
    "Net.a": {"called": {"file": "model.py", "line": 5}},
}
NAMES = ["Net.a.weight", "Net.a.bias", "Net.b.weight"]


def values(factors: dict[str, float]) -> dict[str, Tensor]:
    base = torch.linspace(-1, 1, 24)
    return {name: Tensor(sketch(base * factors.get(name, 1.0))) for name in NAMES}


def recording(factors: dict[str, float] | None = None, **changes: object) -> Recording:
    group = {"lr": 0.1, "betas": [0.9, 0.95]}
    step = Step(1, 0, 1, "AdamW", [{**group, **changes}], 1.0, [], values(factors or {}), ["cpu"])
    return Recording(modules=PLACES, steps=[step])


def sides(candidate: Recording, **options: object) -> Sides:
    return Sides(recording(), [], candidate, FLOAT32, **options)


def test_what_is_done_to_most_gradients_is_placed_at_the_step():
    candidate = recording(dict.fromkeys(NAMES, 0.5))
    (problem,) = gradients.check(sides(candidate), Comparison().figures)
    assert (problem.stage, problem.place) == (GRADIENTS, "train.py:10")
    assert "between backward at train.py:8 and the optimizer's step" in problem.message


def test_what_is_off_in_one_parameter_is_placed_at_its_module():
    (problem,) = gradients.check(sides(recording({"Net.a.bias": 0.5})), Comparison().figures)
    assert (problem.name, problem.place) == ("Net.a.bias", "model.py:5")
    assert "backward" not in problem.message


def test_an_option_that_differs_from_the_start_is_placed_where_the_optimizer_is_made():
    (problem,) = [p for p in training.check(sides(recording(lr=0.2)), Comparison().figures) if p.kind == "schedule"]
    assert problem.place == "setup.py:3"


@pytest.mark.parametrize(
    ("factor_in", "defined", "place"),
    [(1.0, {"file": "model.py", "line": 21}, "model.py:21"), (1.0, None, "train.py:7"), (2.0, None, "train.py:7")],
)
def test_an_output_is_placed_where_its_module_is_the_users_own(factor_in, defined, place):
    modules = {"Net": {"type": "Net", "defined": defined, "called": {"file": "train.py", "line": 7}}}

    def calling(factors: tuple[float, float]) -> Recording:
        base = torch.linspace(-1, 1, 24)
        given, made = (Tensor(sketch(base * factor)) for factor in factors)
        return Recording(modules=modules, calls=[Call("Net", "train", 1, 1, 1, {"0": given}, {"": made})])

    pair = Sides(calling((1.0, 1.0)), [], calling((factor_in, 3.0)), FLOAT32, strict=False)
    (problem,) = forward.check(pair, Comparison().figures)
    assert problem.place == place


LOADER = {"batch_size": 8, "drop_last": True, "sampler": "RandomSampler", "length": 100}
DRAW = {"number": 4, "op": "randperm", "shape": [8], "dtype": "int64", "where": "train.py:7"}


@pytest.mark.parametrize(
    ("field", "mine", "theirs", "place", "said"),
    [
        ("loaders", LOADER, {**LOADER, "drop_last": False}, "data.py:9", "drop_last of the data loader"),
        ("loaders", LOADER, {**LOADER, "length": 90}, "data.py:9", "the data set's length"),
        ("draws", DRAW, {**DRAW, "shape": [9]}, "train.py:7", "random draw 4 is randperm [9], randperm [8] before"),
        ("draws", DRAW, {**DRAW, "where": "other.py:1"}, "", ""),
        ("loaders", LOADER, LOADER, "", ""),
    ],
)
def test_where_other_batches_come_from(field, mine, theirs, place, said):
    reference, candidate = recording(), recording()
    getattr(reference, field).append({**mine, "place": {"file": "data.py", "line": 7}})
    getattr(candidate, field).append({**theirs, "place": {"file": "data.py", "line": 9}})
    found, where = Sides(reference, [], candidate, FLOAT32).source()
    assert where == place
    assert found.startswith(said) if said else not found


def test_a_batch_that_is_another_is_placed_at_its_loader():
    reference, candidate = recording(), recording()
    for made, second in ((reference, "a"), (candidate, "b")):
        made.loaders.append({**LOADER, "place": {"file": "data.py", "line": 9}})
        made.batches.append({"loader": 1, "number": 1, "items": {"0": "x", "1": second}})
    found, where = Sides(reference, [], candidate, FLOAT32).source()
    assert (found, where) == ("item 1 of batch 1 is another in the data loader made at data.py:9", "data.py:9")


@pytest.mark.parametrize(("own", "problems"), [("float32", 1), ("bfloat16", 0)])
def test_a_loss_with_fewer_bits_than_the_originals_own(own, problems):
    def losing(dtype: str) -> Recording:
        made = recording()
        made.losses.append(Loss(1, 1, 2.0, dtype, "cpu"))
        return made

    low = Sides(losing("float32"), [losing(own)], losing("bfloat16"), LOW, strict=False)
    found = [p for p in training.check(low, Comparison().figures) if p.kind == "structure"]
    assert [p.place for p in found] == ["train.py:8"] * problems
