"""A recorded step is cut into the programs that TorchTPU launches."""

from __future__ import annotations

from typing import Any

from torchtpu.lowering.partition import distinct, partition


def _tensor(number: int, shape: list[int], stride: list[int] | None = None) -> dict[str, Any]:
    strides = stride or [8 ** (len(shape) - 1 - at) for at in range(len(shape))]
    return {"tensor": number, "shape": shape, "stride": strides, "dtype": "float32", "from_host": False, "name": "x"}


def _entry(
    op: str, read: list[int], made: int, *more: Any, shape: tuple[int, ...] = (8, 8), **about: Any
) -> dict[str, Any]:
    described = {key: value for key, value in _tensor(made, list(shape)).items() if key in ("shape", "stride", "dtype")}
    return {
        "op": op, "args": [*({"tensor": number} for number in read)], "kwargs": {}, "results": [made],
        "shapes": [described], "stack": 0, "phase": "forward", **about,
    }  # fmt: skip


def _step(operators: list[dict[str, Any]], kept: list[int], inputs: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "format": 1, "inputs": [_tensor(number, [8, 8]) for number in range(inputs)], "operators": operators,
        "kept": kept, "stacks": [[]], "reads": [], **more,
    }  # fmt: skip


def _names(part: Any) -> list[str]:
    return [entry["op"].split(".")[1] for entry in part.step["operators"]]


def test_every_operator_is_a_program_and_a_view_is_none() -> None:
    step = _step(
        [_entry("aten.relu.default", [0], 1), _entry("aten.t.default", [1], 2), _entry("aten.exp.default", [2], 3)], [3]
    )
    first, second = partition(step)
    assert (_names(first), _names(second)) == (["relu"], ["t", "exp"])
    assert [len(first.step["kept"]), len(second.step["kept"])] == [1, 1]
    assert len(second.step["inputs"]) == 1


def test_result_that_nobody_reads_is_not_kept() -> None:
    step = _step([_entry("aten.relu.default", [0], 1), _entry("aten.exp.default", [0], 2)], [2])
    first, second = partition(step)
    assert first.step["kept"] == [] and second.step["kept"] != []


def test_view_that_another_program_reads_keeps_what_it_looks_at() -> None:
    step = _step(
        [
            _entry("aten.relu.default", [0], 1, region=1),
            _entry("aten.t.default", [1], 2, region=1),
            _entry("aten.exp.default", [2], 3),
        ],
        [3],
    )
    compiled, after = partition(step)
    assert compiled.kind == "compiled" and len(compiled.step["kept"]) == 1
    assert _names(after) == ["t", "exp"]


def test_compiled_calls_are_a_program_forward_and_one_backward() -> None:
    step = _step(
        [
            _entry("aten.relu.default", [0], 1, region=1),
            _entry("aten.exp.default", [1], 2, region=1),
            _entry("aten.mul.Tensor", [2, 1], 3, region=1, phase="backward"),
            _entry("aten.add.Tensor", [3, 0], 4, region=None, phase="backward"),
            _entry("aten.mul.Tensor", [3, 3], 5, region=1, phase="backward"),
            _entry("aten.add_.Tensor", [0, 5], 0, phase="optimizer"),
        ],
        [4],
    )
    assert [part.kind for part in partition(step)] == ["compiled", "compiled", "operator", "operator"]
    assert [part.kind for part in partition(step, "operators")] == ["operator"] * 6
    deferred = partition({**step, "deferred": True})
    assert [part.kind for part in deferred] == ["compiled", "compiled", "deferred", "deferred"]


def test_mode_changes_nothing_where_nothing_is_compiled() -> None:
    operators = [_entry("aten.relu.default", [0], 1), _entry("aten.exp.default", [1], 2)]
    assert len(partition(_step(operators, [2], deferred=True))) == 2


def test_what_is_written_in_place_is_an_input() -> None:
    (part,) = partition(_step([_entry("aten.add_.Tensor", [0, 1], 0)], [], inputs=2))
    assert len(part.step["inputs"]) == 2


def test_equal_programs_are_counted_once() -> None:
    step = _step(
        [_entry("aten.relu.default", [0], 1), _entry("aten.relu.default", [1], 2), _entry("aten.exp.default", [2], 3)],
        [3],
    )
    assert [times for _, times in distinct(partition(step))] == [2, 1]


def test_input_in_another_order_of_memory_is_permuted() -> None:
    step = _step([_entry("aten.relu.default", [0], 1)], [1])
    step["inputs"] = [_tensor(0, [8, 4], [1, 8])]
    (part,) = partition(step)
    assert part.step["inputs"][0]["shape"] == [4, 8]
    assert _names(part) == ["permute", "relu"] and part.step["operators"][0]["args"][1] == [1, 0]
