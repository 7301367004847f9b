"""What a log says is read as a run: exception, frames, warnings, native lines, signal, losses, and nothing more."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools.diagnose import diagnose
from tools.explain import explain, render
from tools.log_text import read_text

SAMPLES = tomllib.loads((Path(__file__).parent / "knowledge_samples.toml").read_text(encoding="utf-8"))
LOG = """\
2026-11-30 10:00:00,123 step 1 loss: 2.5
[rank0]: step 2 loss: nan
/home/u/train.py:7: UserWarning: aten::median is not implemented for TPU. Falling back to CPU
E1130 10:00:00.000000 42 pjrt.cc:12] RESOURCE_EXHAUSTED: out of memory in memory space hbm
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/u/train.py", line 12, in <module>
[rank0]:     main()
[rank0]:   File "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", line 9, in forward
[rank0]:     raise RuntimeError("x")
[rank0]: RuntimeError: first line
[rank0]: second line
"""


def test_reads_every_part_of_a_log() -> None:
    run = read_text(LOG)
    assert run.outcome == "exception"
    assert run.exception is not None
    assert (run.exception["type"], run.exception["message"]) == ("RuntimeError", "first line\nsecond line")
    assert [(f["file"], f["line"], f["source"]) for f in run.exception["frames"]] == [
        ("/home/u/train.py", 12, "main()")
    ]
    assert run.exception["where"]["line"] == 9
    assert [w["kind"] for w in run.warnings] == ["cpu-fallback"]
    assert run.native_tail == [
        "E1130 10:00:00.000000 42 pjrt.cc:12] RESOURCE_EXHAUSTED: out of memory in memory space hbm"
    ]
    assert run.losses[0] == 2.5 and run.losses[1] != run.losses[1]


def test_an_ordinary_log_shows_nothing() -> None:
    run = read_text("epoch 1\nloss 2.3\nloss 2.2\nAverage error: 3\ndone\n")
    assert (run.outcome, run.exception, run.signal, run.warnings, run.native_tail) == ("unknown", None, None, [], [])
    assert diagnose(run) == []


def test_the_last_of_chained_exceptions_ended_it_and_the_others_are_its_causes() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    h()\nmy.mod.OwnError: b\n'
    )
    exception = read_text(text).exception
    assert exception is not None
    assert (exception["type"], exception["causes"]) == ("my.mod.OwnError", ["KeyError: 'a'"])


@pytest.mark.parametrize(
    ("text", "outcome", "signal"),
    [
        ("Segmentation fault (core dumped)", "abort", "SIGSEGV"),
        ("terminate called after throwing an instance of 'std::x'", "abort", "SIGABRT"),
        ("train.sh: line 3: 77 Killed\nKilled", "abort", "SIGKILL"),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)", "hang", None),
    ],
)
def test_names_how_native_code_ended_it(text: str, outcome: str, signal: str | None) -> None:
    run = read_text(text)
    assert (run.outcome, run.signal) == (outcome, signal)


def pasted(sample: dict[str, object]) -> str:
    """A sample of a failure as somebody would paste it."""
    if "type" not in sample:
        warning = f"train.py:3: UserWarning: {sample['warning']}\n" if "warning" in sample else ""
        return f"{warning}{sample.get('native', '')}\n{sample.get('output', '')}"
    file, _, source = str(sample.get("source", "train.py: work()")).rpartition(": ")
    frame = f'  File "{file or "train.py"}", line 3, in <module>\n    {source}\n'
    return f"Traceback (most recent call last):\n{frame}{sample['type']}: {sample['message']}\n"


def test_a_pasted_failure_is_named_as_the_run_is() -> None:
    """Losses and outcomes are what only the launcher sees, so samples of nothing else are left out."""
    seen = {name: s for name, s in SAMPLES.items() if {"type", "warning", "native", "output"} & set(s)}
    seen = {name: s for name, s in seen.items() if s["outcome"] not in ("hang", "time-limit", "abort")}
    wrong = {}
    for name, sample in seen.items():
        found = [cause.entry for cause in diagnose(read_text(pasted(sample)))]
        if found[:1] != [name]:
            wrong[name] = found[:3]
    assert len(seen) > 80
    assert not wrong


def test_an_explanation_points_at_the_code_and_shows_the_patch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nmodel = torch.nn.Linear(4, 2).cuda()\n")
    run = read_text("AssertionError: Torch not compiled with CUDA enabled")
    first = explain(run, "text", tmp_path).causes[0]
    assert first.entry == "cuda-not-compiled"
    assert any(place.startswith("train.py:2 TPU104") for place in first.remedy_here.places)
    assert "+model = torch.nn.Linear(4, 2).to(" in first.remedy_here.patch
    assert "cuda()" in (tmp_path / "train.py").read_text()


def test_what_is_not_known_is_not_explained() -> None:
    explanation = explain(read_text("ValueError: the moon is in the wrong phase"), "text")
    assert explanation.causes == []
    assert "No known cause fits" in render(explanation)


def test_a_refuted_entry_is_ranked_behind_and_says_so() -> None:
    run = read_text("AssertionError: Torch not compiled with CUDA enabled")
    causes = explain(run, "text", refuted=["cuda-not-compiled"]).causes
    assert causes[-1].entry == "cuda-not-compiled" and causes[-1].note
