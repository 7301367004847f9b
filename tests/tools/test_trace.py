"""What `trace` tells of real programs on the device, and on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tools import trace as tracer
from tools.commands import Command
from tools.run import RunRequest
from torchtpu.tracing.causes import FIRST, UNSEEN, Causes, Signature
from torchtpu.tracing.dynamo import break_reason, guard_failures

TRAINING = """
import torch

device = torch.accelerator.current_accelerator() or torch.device("cpu")
model = torch.nn.Linear(8, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(12 if step == 3 else 16, 8).to(device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    x.roll(1 + step // 4, 0)
    optimizer.step()
    if loss > 100:
        print("large")
    positive = x[x > 0]
    print(loss.item(), positive.cpu().shape)
"""
COMPILED = """
import torch

device = torch.accelerator.current_accelerator()


@torch.compile
def double(x):
    y = x * 2
    print("in between")
    return y.sum()


for n in (4, 8):
    double(torch.ones(n).to(device)).cpu()
"""


def line(source: str, text: str) -> str:
    number = next(i for i, each in enumerate(source.splitlines(), 1) if text in each)
    return f"prog.py:{number}"


def traced(folder: Path, source: str, device: str = "simulated", **options: object) -> tracer.TraceOutput:
    (folder / "prog.py").write_text(source)
    command = Command(text="python prog.py", argv=["python", "prog.py"], env={"OMP_NUM_THREADS": "1"})
    request = RunRequest(command=command, cwd=folder, device=device, sandbox=False, timeout=300, **options)
    found = tracer.trace(request, folder / "chrome.json")
    jsonschema.validate(json.loads(found.model_dump_json()), json.loads(tracer.schema()))
    assert found.processes, found.explanation
    return found


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("on-cpu")
    return folder, traced(folder, TRAINING, device="cpu").processes[0]


def test_operators_of_a_program_on_the_cpu(on_cpu):
    _, process = on_cpu
    assert (process.device, process.steps) == ("cpu", 5)
    multiplied = [op for op in process.operators if op.place == line(TRAINING, "model(x)") and op.phase == "program"]
    assert {(op.name, tuple(map(tuple, op.shapes)), op.count) for op in multiplied} >= {
        ("aten::addmm", ((4,), (16, 8), (8, 4)), 4),
        ("aten::addmm", ((4,), (12, 8), (8, 4)), 1),
    }
    assert {op.dtypes[0] for op in multiplied if op.dtypes} == {"float32"}
    assert any(op.phase == "backward" and op.place == line(TRAINING, "backward") for op in process.operators)
    assert any(op.phase == "optimizer" for op in process.operators)
    assert process.syncs == process.compilations == []


def test_chrome_file_has_operators_and_steps(on_cpu):
    folder, _ = on_cpu
    events = json.loads((folder / "chrome.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in slices if event["cat"] == "step"] == [f"step {n}" for n in range(1, 6)]
    assert all(event["dur"] >= 0 and event["ts"] >= 0 and "pid" in event and "tid" in event for event in slices)
    product = next(event for event in slices if event["name"] == "aten::addmm")
    assert product["args"]["place"] == line(TRAINING, "model(x)")


def test_a_program_that_stops_at_a_step_tells_of_its_last_one(tmp_path):
    process = traced(tmp_path, TRAINING, device="cpu", steps=2).processes[0]
    assert [cost.step for cost in process.per_step] == [1, 2]


@pytest.mark.slow
def test_a_training_loop_on_the_device(tmp_path):
    process = traced(tmp_path, TRAINING).processes[0]
    assert process.device == "tpu"
    waits = {(sync.kind.partition(" ")[2][:10], sync.place): sync.count for sync in process.syncs}
    assert {place for _, place in waits} == {
        line(TRAINING, "if loss"), line(TRAINING, "positive ="), line(TRAINING, "loss.item()")
    }  # fmt: skip
    assert sum(sync.count for sync in process.syncs) == 20
    masked = next(one for one in process.dynamic if one.why.startswith("a result"))
    assert (masked.name, masked.place) == ("index", line(TRAINING, "positive ="))
    assert any(one.place == line(TRAINING, "model(x)") and "change" in one.why for one in process.dynamic)
    assert process.per_step[1].compilations < process.per_step[0].compilations
    causes = {(one.step, one.operator, one.place): one.cause for one in process.late}
    assert "shape [12, 8] instead of [16, 8]" in causes[4, "aten::linear", line(TRAINING, "model(x)")]
    assert "constant 1: [2] instead of [1]" in causes[5, "aten::roll", line(TRAINING, "roll")]
    assert causes[3, "aten::index.Tensor", line(TRAINING, "positive =")] == "a result whose size depends on data"
    first = [one.cause for one in process.compilations if one.step == 1 and one.operator == "aten::linear"]
    assert first == [FIRST]


@pytest.mark.slow
def test_a_compiled_function_on_the_device(tmp_path):
    found = traced(tmp_path, COMPILED)
    process = found.processes[0]
    (broken,) = process.graph_breaks
    assert broken.place == line(COMPILED, "print(")
    assert "print" in broken.reason
    assert broken.count == 2
    recompiled = {one.place: one.causes for one in process.recompilations}
    assert any("expected 4, actual 8" in cause for causes in recompiled.values() for cause in causes)
    assert process.compilations_elsewhere > 0
    tables = {title: rows for title, _, rows in tracer.sections(process, [], 5)}
    assert tables["graph breaks of torch.compile"][0][2] == broken.place


def test_tables_are_cut(on_cpu):
    _, process = on_cpu
    tables = {title: rows for title, _, rows in tracer.sections(process, [], 2)}
    assert len(tables["operators on the device, by time"]) == 2
    assert tables["CPU fallbacks"] == []


def test_the_published_schema_is_current():
    published = Path(__file__).parents[2] / "docs/schema/trace-v1.json"
    assert published.read_text() == tracer.schema(), "run: make docs"


@pytest.mark.parametrize(
    ("new", "cause"),
    [
        (Signature(((2, 3),), ("float32",), (("1", "0.5"),)), "shape [2, 3] instead of [2, 2] (tensor 0)"),
        (Signature(((2, 2),), ("bfloat16",), (("1", "0.5"),)), "dtype bfloat16 instead of float32"),
        (Signature(((2, 2),), ("float32",), (("1", "0.25"),)), "constant 1: 0.25 instead of 0.5"),
        (Signature(((2, 2), (2,)), ("float32", "int64"), (("1", "0.5"),)), "2 tensors instead of 1"),
        (Signature(((2, 2),), ("float32",), (("1", "0.5"),)), UNSEEN),
    ],
)
def test_a_cause_is_what_differs_from_the_nearest_signature(new, cause):
    causes = Causes()
    assert causes.of("aten::mul", Signature(((9, 9, 9),), ("int64",), ())) == FIRST
    causes.of("aten::mul", Signature(((2, 2),), ("float32",), (("1", "0.5"),)))
    assert causes.of("aten::mul", new).startswith(cause)


def test_logs_of_torch_compile_are_read():
    assert break_reason("Graph break in user code at a.py:3\nGraph Break Reason: no\n  Explanation: it prints\n") == (
        "it prints"
    )
    said = "Recompiling function f in a.py:1\n    triggered by\n    - 0/1: size 4\n    - 0/0: size 4\n    - 0/0: size 2"
    assert guard_failures(said) == ["size 4", "size 2"]
