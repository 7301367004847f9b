"""What a profile looks like as text, page, trace and comparison."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.torchtpu.test_hlo import PROGRAM
from tools.profile import fingerprint, target_named
from tools.profiles.compare import compare, compare_text
from tools.profiles.html import page
from tools.profiles.text import text
from tools.profiles.trace import trace
from torchtpu.compiler import Compiled, Program, assigned, key
from torchtpu.profile import Profiler
from torchtpu.targets import find

MEMORY = {"argument": 1000, "output": 400, "alias": 300, "temp": 2000, "code": 100}


def step() -> dict[str, Any]:
    shape = {"shape": [64, 128], "stride": [128, 1], "dtype": "bfloat16"}
    weight = {"shape": [256, 128], "stride": [128, 1], "dtype": "bfloat16"}
    linear = {
        "op": "aten.linear.default",
        "args": [{"tensor": 0}, {"tensor": 1}],
        "kwargs": {},
        "results": [2],
        "shapes": [{"shape": [64, 256], "stride": [256, 1], "dtype": "bfloat16"}],
        "stack": 0,
        "phase": "forward",
    }
    nothing = {**linear, "op": "aten.relu.default", "args": [{"tensor": 2}], "stack": 1}
    return {
        "inputs": [
            {"tensor": 0, "name": "from the host 0", "from_host": True, **shape},
            {"tensor": 1, "name": "layer.weight", "from_host": False, **weight},
        ],
        "operators": [nothing] * 7 + [linear],
        "kept": [2],
        "stacks": [
            [
                ["/x/site-packages/torch/nn/functional.py", 9, "linear"],
                ["model.py", 12, "forward"],
                ["run.py", 3, "main"],
            ],
            [["run.py", 4, "main"]],
        ],
        "reads": [{"op": "aten._local_scalar_dense.default", "stack": 1}],
        "notes": ["one note"],
    }


@pytest.fixture
def profile() -> dict[str, Any]:
    return Profiler(step(), Compiled("ok", memory=MEMORY, hlo=PROGRAM), find("v5e")).profile()


def test_profile_of_a_known_program(profile: dict[str, Any]) -> None:
    assert profile["fits"] is True
    assert profile["memory"]["peak"] == 1000 + 400 - 300 + 2000 + 100
    assert profile["time"]["model_flops"] == profile["time"]["compiled_flops"] == 2 * 64 * 128 * 256
    # The compiler names only what is inside the fusion.
    assert profile["attribution"] == {"to_user_lines": 1.0, "to_operators": 1.0, "inferred": 1.0}
    (line,) = profile["lines"]
    assert (line["file"], line["line"]) == ("model.py", 12)
    assert profile["operators"][0]["through"] == "linear"
    assert profile["waste"]["layout_copies"] == 2
    assert profile["waste"]["host_reads"][0]["line"] == 4
    json.dumps(profile)


def test_text_says_that_it_is_an_estimate_and_by_which_model(profile: dict[str, Any]) -> None:
    shown = text(profile)
    assert "estimate, not measured" in shown
    assert "window model" in shown
    assert "model.py:12" in shown
    assert "one note" in shown
    assert "without the compiler's cycles" in text(profile | {"scheduled_only": True})


def test_a_step_that_does_not_fit_says_so_and_has_no_time() -> None:
    compiled = Compiled("out-of-memory", "CompileTimeHbmOom: HLO temporaries (35.98G) exceeds (15.75G)", hlo=PROGRAM)
    profile = Profiler(step(), compiled, find("v5e")).profile()
    assert profile["fits"] is False
    assert profile["time"] is None
    shown = text(profile)
    assert "fits     no: CompileTimeHbmOom" in shown
    # What holds the memory is told from the schedule that did not fit.
    assert "f32[64,256]" in shown
    assert "MFU" not in shown
    assert "Memory over the schedule" in page(profile, "title")


def test_a_compilation_that_was_given_up_says_nothing_about_fitting() -> None:
    profile = Profiler(step(), Compiled("time-limit", "given up after 5 s"), find("v5e")).profile()
    assert profile["fits"] is None
    assert "fits     not known" in text(profile)


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.external += [value or "" for name, value in attrs if name in ("src", "href")]


def test_page_needs_nothing_else(profile: dict[str, Any]) -> None:
    profile["operators"][0]["op"] = "<script>alert(1)</script>"
    found = page(profile, "a <b> title")
    parser = _Balanced()
    parser.feed(found)
    assert parser.external == []
    assert "script" not in parser.tags
    assert parser.tags.count("svg") == 2
    assert "model.py:12" in found


def test_trace_has_every_instruction_in_order(profile: dict[str, Any]) -> None:
    events = [event for event in trace(profile)["traceEvents"] if event["ph"] == "X"]
    assert [event["args"]["name"] for event in events] == ["copy-start", "copy-done", "fusion", "copy.1", "copy.2"]
    ends = [event["ts"] + event["dur"] for event in events]
    assert ends == sorted(ends)
    assert ends[-1] == pytest.approx(profile["time"]["seconds"] * 1e6, rel=1e-6)


def test_comparison_names_the_line_that_changed(profile: dict[str, Any]) -> None:
    heavy = PROGRAM.replace('"1500"', '"150000"')
    slower = Profiler(step(), Compiled("ok", memory=MEMORY, hlo=heavy), find("v5e")).profile()
    found = compare(slower, profile)
    assert found["figures"]["seconds"]["ratio"] < 1
    assert found["figures"]["peak_memory"]["ratio"] == 1
    assert found["lines"][0]["line"] == "model.py:12"
    assert "model.py:12" in compare_text(found)
    assert "cannot be compared" not in compare_text(found)
    assert "cannot be compared" in compare_text(compare(slower | {"scheduled_only": True}, profile))


def test_memory_from_the_compilers_dump() -> None:
    dump = """BufferAssignment:
allocation 0: size 64, page 0, thread-local:
allocation 1: size 500, page 0, parameter 0, shape |f32[125]| at ShapeIndex {}:
allocation 2: size 300, page 0, parameter 1, maybe-live-out, shape |f32[75]|:
allocation 3: size 40, page 0, maybe-live-out:
allocation 4: size 9000, page 0, preallocated-temp:
allocation 5: size 77, color 1, page 0, preallocated-temp:
"""
    assert assigned(dump) == {"argument": 800, "output": 40, "alias": 0, "temp": 9000, "code": 0}


def test_cache_is_keyed_by_program_target_options_and_donation() -> None:
    program = Program("module {}", {0: 0})
    keys = {
        key(program, find("v5e")),
        key(program, find("v6e")),
        key(Program("module { }", {0: 0}), find("v5e")),
        key(Program("module {}", {}), find("v5e")),
        key(Program("module {}", {0: 0}, {"xla_x": "1"}), find("v5e")),
        key(program, find("v5e"), scheduled_only=True),
    }
    assert len(keys) == 6
    assert key(program, find("v5e")) == key(Program("module {}", {0: 0}), find("v5e:1x1"))


def test_fingerprint_sees_contents_and_names(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    first = fingerprint(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("anything")
    assert fingerprint(tmp_path) == first
    (tmp_path / "a.py").write_text("x = 2\n")
    second = fingerprint(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, fingerprint(tmp_path)}) == 3


def test_unknown_target_is_the_users_mistake() -> None:
    from tools.errors import Exit, UserError

    with pytest.raises(UserError) as caught:
        target_named("v6e-7")
    assert caught.value.exit_code == Exit.BAD_INPUT
    assert "targets" in caught.value.remedy


def test_smaller_batches_are_tried_until_one_fits() -> None:
    from tools.profile import ProfileOutput, Timing
    from tools.profiles.fit import attempts_text, make_fit, smaller_batches

    assert list(smaller_batches("python train.py --batch_size=12 --x 3")) == [
        f"python train.py --batch_size={size} --x 3" for size in (6, 3, 1)
    ]
    assert list(smaller_batches("python train.py --batch-size 1")) == []
    assert list(smaller_batches("python train.py --epochs 4")) == []

    def profiled(command: str) -> ProfileOutput:
        outcome = "ok" if " 2" in command else "out-of-memory"
        memory = MEMORY if outcome == "ok" else {}
        found = Profiler(step(), Compiled(outcome, memory=memory, hlo=PROGRAM), find("v5e")).profile()
        return ProfileOutput(outcome=outcome, target="v5e", command=command, timing=Timing(), profile=found)

    tried = make_fit("python t.py -batch 8", profiled)
    assert [(one.command, one.outcome) for one in tried] == [
        ("python t.py -batch 4", "out-of-memory"),
        ("python t.py -batch 2", "ok"),
    ]
    output = profiled("python t.py -batch 8")
    output.attempts = [one.model_dump() for one in tried]
    lines = list(attempts_text(output))
    assert "does not fit" in lines[1]
    assert "takes 3.1 KiB" in lines[2]


def test_lines_of_a_library_are_told_below_the_line_that_called_it() -> None:
    recorded = step()
    recorded["stacks"][0].insert(1, ["/x/site-packages/transformers/models/llama.py", 77, "forward"])
    profile = Profiler(recorded, Compiled("ok", memory=MEMORY, hlo=PROGRAM), find("v5e")).profile()
    (line,) = profile["lines"]
    assert [one["place"] for one in line["inner"]] == ["transformers/models/llama.py:77"]
    assert "in transformers/models/llama.py:77" in text(profile)
    assert "in transformers/models/llama.py:77" in page(profile, "title")


def test_a_buffer_is_given_to_one_result_only() -> None:
    pytest.importorskip("jax")
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    from torchtpu.compiler_child import _donate

    text = (
        "func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32> {jax.buffer_donor = true})"
        " -> (tensor<4xf32>, tensor<4xf32>) {\n  return %a, %b : tensor<4xf32>, tensor<4xf32>\n}\n"
    )
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        _donate(module, {"0": 1}, ir)
        first, second = str(module).split("%arg1")[:2]
    assert "tf.aliasing_output = 1" in first
    assert "buffer_donor" not in first
    assert "buffer_donor" in second
