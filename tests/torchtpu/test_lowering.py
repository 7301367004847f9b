"""A program's step from its run to a compiled program for a TPU, and what of it is told by line."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from torchtpu import device
from torchtpu.launch import LaunchSpec, Outcome, RunResult, launch
from torchtpu.lowering import capture
from torchtpu.lowering.flops import Shapes, operator_flops
from torchtpu.lowering.places import place_of

ROOT = Path(__file__).resolve().parents[2]
MLP = ROOT / "evals" / "profiles" / "programs" / "mlp" / "train.py"


def _missing() -> str | None:
    try:
        device.choose("simulated")
    except device.DeviceError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_missing() is not None, reason=_missing() or "")


def record(folder: Path, source: str, step: int = 2, name: str = "train.py") -> tuple[RunResult, dict[str, Any] | None]:
    program, out = folder / "program", folder / "out"
    program.mkdir()
    out.mkdir()
    (program / name).write_text(source)
    spec = LaunchSpec(
        argv=["python", name],
        cwd=program,
        env=capture.variables(out, step),
        device="simulated",
        sandbox="off",
        max_steps=step,
        time_limit=200,
        writable=[out],
    )
    result = launch(spec)
    found = [path for name in (capture.STEP_FILE, capture.FORWARD_FILE) if (path := out / name).is_file()]
    return result, json.loads(found[0].read_text()) if found else None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result, step = record(tmp_path_factory.mktemp("recorded"), MLP.read_text())
    assert result.outcome is Outcome.STOPPED_AT_STEPS, result.output_tail
    assert step is not None
    return step


def test_the_step_is_the_programs_own(recorded: dict[str, Any]) -> None:
    names = {entry["name"]: entry["shape"] for entry in recorded["inputs"]}
    assert names["0.weight"] == [512, 256]
    assert sum(entry["from_host"] for entry in recorded["inputs"]) == 2, "images and labels arrive in the step"
    phases = {entry["phase"] for entry in recorded["operators"]}
    assert phases == {"forward", "backward", "optimizer"}
    shapes = Shapes(recorded)
    # Forward, gradient of the weights, and for the second layer that of its input.
    expected = 2 * 64 * (256 * 512 * 2 + 512 * 128 * 3)
    assert sum(operator_flops(entry, shapes) for entry in recorded["operators"]) == expected


def test_backward_belongs_to_the_line_of_forward(recorded: dict[str, Any]) -> None:
    line = MLP.read_text().splitlines().index("        loss = nn.functional.cross_entropy(model(x), y)") + 1
    backward = [entry for entry in recorded["operators"] if entry["op"] == "aten.linear_backward.default"]
    assert len(backward) == 2
    assert {place_of(recorded, entry)[1] for entry in backward} == {line}
    step = next(at for at, text in enumerate(MLP.read_text().splitlines(), 1) if "optimizer.step()" in text)
    updates = [entry for entry in recorded["operators"] if entry["phase"] == "optimizer"]
    assert {place_of(recorded, entry)[1] for entry in updates} == {step}


def test_gradients_that_are_thrown_away_are_no_results(recorded: dict[str, Any]) -> None:
    kept = set(recorded["kept"])
    gradients = [
        number
        for entry in recorded["operators"]
        if entry["op"] == "aten.linear_backward.default"
        for number in entry["results"]
    ]
    assert not kept & set(gradients)


@pytest.mark.timeout(400)
def test_lowered_and_compiled_for_v5e(recorded: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    from tools.commands import parse
    from tools.profile import ProfileRequest, profile

    original, copy = tmp_path / "original", tmp_path / "copy"
    for folder in (original, copy):
        folder.mkdir()
        shutil.copy(MLP, folder)
    request = ProfileRequest(
        command=parse("python train.py"), cwd=copy, original=original, target="v5e", state=tmp_path / "state"
    )
    said: list[str] = []
    output = profile(request, said.append)
    found = output.profile
    assert output.outcome == "ok", found["message"]
    assert found["time"]["model_flops"] == found["time"]["compiled_flops"] == 58720256
    assert found["attribution"]["to_user_lines"] > 0.95
    assert 0 < found["time"]["low"] <= found["time"]["seconds"] <= found["time"]["high"]
    # The weights' buffers are taken over by the new ones.
    assert found["memory"]["alias_bytes"] > 0.9 * found["memory"]["output_bytes"]
    assert {row["file"] for row in found["lines"]} == {"train.py"}
    again = profile(request.model_copy(update={"cwd": tmp_path / "nowhere"}))
    assert again.cached == ["program", "compilation"]
    assert again.profile["time"] == found["time"]


INFERENCE = """
import torch
device = torch.accelerator.current_accelerator()
model = torch.nn.Linear(32, 16).to(device).eval()
with torch.no_grad():
    for length in (4, 8, 8):
        scores = model(torch.ones(length, 32).to(device))
        print(scores.cpu().shape, scores.argmax().item())
"""


@pytest.mark.slow
def test_a_program_without_optimizer_gives_its_second_call(tmp_path: Path) -> None:
    result, step = record(tmp_path, INFERENCE, name="infer.py")
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert step is not None
    (linear,) = [entry for entry in step["operators"] if entry["op"] == "aten.linear.default"]
    assert linear["shapes"][0]["shape"] == [8, 16]


@pytest.mark.slow
def test_a_shape_that_depends_on_data_is_refused_by_name(tmp_path: Path) -> None:
    source = """
import torch
x = torch.ones(8).to("tpu")
print(x[x > 0].sum())
"""
    result, step = record(tmp_path, source)
    assert step is None
    assert result.exception is not None
    assert "depends on data" in result.exception.message


def test_our_own_lines_do_not_change_the_program() -> None:
    from torchtpu.lowering import replay

    here = f'loc("{Path(replay.__file__)}":12:0)'
    text = here.replace(replay._HERE, "torchtpu/")
    assert replay._OUR_LINES.sub(r"\1:1:0", text) == 'loc("torchtpu/lowering/replay.py":1:0)'
    assert sys.modules["torchtpu.lowering.replay"] is replay


def test_running_sums_by_doubling_are_those_of_torch() -> None:
    import torch

    from torchtpu.lowering.replay import _SUBSTITUTES

    x = torch.arange(1, 36).reshape(5, 7)
    for dim in (0, 1, -1):
        assert torch.equal(_SUBSTITUTES["aten.cumsum.default"](x, dim), x.cumsum(dim))
        assert torch.equal(_SUBSTITUTES["aten.cumprod.default"](x % 3 + 1, dim), (x % 3 + 1).cumprod(dim))
    assert torch.equal(_SUBSTITUTES["aten.cumsum.default"](x > 9, 1), (x > 9).cumsum(1))
    halves = x / 2
    assert torch.equal(_SUBSTITUTES["aten.cumsum.default"](halves, 0, dtype=torch.float64), halves.double().cumsum(0))


@pytest.mark.slow
def test_a_module_alone_keeps_its_gradients(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    from tools.commands import parse
    from tools.profile import ProfileRequest, profile

    (tmp_path / "net.py").write_text("import torch\n\ndef make(x):\n    return x @ x\n\nclass Net(torch.nn.Linear):\n"
                                     "    def __init__(self):\n        super().__init__(256, 512)\n")  # fmt: skip
    command = parse("python -m torchtpu.lowering.module_run net:Net --input bf16[64,256] --dtype bfloat16 --train")
    state = tmp_path.parent / f"{tmp_path.name}-state"
    request = ProfileRequest(
        command=command, cwd=tmp_path, original=tmp_path, target="v6e", state=state, quick=True, sandbox=False
    )
    found = profile(request).profile
    # Forward and the gradient of the weights; the input asks for none.
    assert found["time"]["model_flops"] == 2 * 2 * 64 * 256 * 512
    assert found["memory"]["output_bytes"] >= 2 * 512 * 256
    assert not any(row["file"] for row in found["lines"]), "nothing of the user's is on the stack of a bare class"
