"""Each known failure is named from how it looks, and entries that are not well formed are refused by file and line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.diagnose import Confidence, diagnose
from tools.errors import UserError
from tools.knowledge import FOLDER, entries, read
from tools.rules import all_rules
from tools.run import RunOutput

SAMPLES = tomllib.loads((Path(__file__).parent / "knowledge_samples.toml").read_text(encoding="utf-8"))


def run(outcome: str = "exception", **seen: Any) -> RunOutput:
    """A run as it would have ended; the seen parts as in knowledge_samples.toml."""
    result = RunOutput(outcome=outcome, explanation="", losses=seen.get("losses", []))
    if "type" in seen:
        file, _, source = str(seen.get("source", "a.py: ")).rpartition(": ")
        place = {"file": file, "line": 1, "source": source}
        result.exception = {"type": seen["type"], "message": seen["message"], "frames": [place], "where": place}
    if "warning" in seen:
        result.warnings = [{"kind": "other", "message": seen["warning"]}]
    result.native_tail = [seen["native"]] if "native" in seen else []
    result.output_tail = seen.get("output", "")
    return result


@pytest.mark.parametrize("name", [entry.id for entry in entries() if entry.symptoms])
def test_names_the_cause(name: str) -> None:
    sample = {key: value for key, value in SAMPLES[name].items() if key != "recorded"}
    found = diagnose(run(**sample))
    assert found, "nothing is known of it"
    assert found[0].entry == name
    assert found[0].evidence


def test_every_sample_has_its_entry() -> None:
    assert set(SAMPLES) == {entry.id for entry in entries() if entry.symptoms}


def test_no_entry_is_without_a_source_or_a_probe() -> None:
    assert not [entry.id for entry in entries() if not entry.sources and entry.probe is None]


def test_entries_name_rules_that_exist() -> None:
    known = {rule.ID for rule in all_rules()}
    assert not {(entry.id, rule) for entry in entries() for rule in entry.rules if rule not in known}


def test_nothing_is_named_for_a_run_that_ended_well() -> None:
    assert diagnose(run("completed", losses=[2.3, 2.1, 2.0], output="done\n")) == []


def test_an_ordinary_mistake_has_no_known_cause() -> None:
    assert diagnose(run(type="KeyError", message="'epoch'")) == []


def test_the_error_itself_outranks_what_the_program_printed() -> None:
    found = diagnose(
        run(
            type="RuntimeError",
            message="aten::sparse_mask(): sparse operators are not supported on TPU yet",
            output="torch._dynamo hit config.recompile_limit (8)\n",
        )
    )
    assert [cause.entry for cause in found] == ["sparse-operators", "recompile-limit"]
    assert [cause.confidence for cause in found] == [Confidence.CERTAIN, Confidence.POSSIBLE]


def test_a_specific_cause_outranks_a_general_one() -> None:
    message = "operator 'aten::linalg_tensorinv.out' is not implemented for TPU. Please file a feature request"
    found = [cause.entry for cause in diagnose(run(type="RuntimeError", message=message))]
    assert found == ["linear-algebra-missing", "operator-missing"]
    message = message.replace("linalg_tensorinv.out", "linalg_cholesky_ex.L")
    assert diagnose(run(type="RuntimeError", message=message))[0].entry == "operator-cholesky"


def test_a_chained_cause_counts() -> None:
    result = run(type="RuntimeError", message="worker failed")
    assert result.exception is not None
    result.exception["causes"] = ["AssertionError: Torch not compiled with CUDA enabled"]
    assert diagnose(result)[0].entry == "cuda-not-compiled"


def test_an_error_that_the_program_caught_and_printed_is_possible() -> None:
    printed = "WARNING:train:step 0 skipped: masked_fill(): expected tensor to be on tpu, got cpu\n"
    found = diagnose(run(type="ZeroDivisionError", message="division by zero", output=printed))
    assert found[0].entry == "mask-on-cpu"
    assert found[0].confidence is Confidence.POSSIBLE
    assert (
        diagnose(run(type="ZeroDivisionError", message="x", output=printed.replace("skipped: ", "").lower()[8:])) == []
    )


def test_losses_that_only_look_alike_are_no_sign() -> None:
    assert diagnose(run("completed", losses=[2.3, 2.3, 2.3])) == []
    assert diagnose(run("completed", losses=[2.3] * 4 + [2.2])) == []


GOOD = (FOLDER / "sparse-operators.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("+++\nid", "id", "a TOML head between two lines"),
        ('id = "', "id = ", "Invalid value"),
        ('owner = "backend"', 'owner = "nobody"', "owner: Input should be"),
        ('owner = "backend"', 'colour = "red"', "owner: Field required"),
        ('versions = "', 'colour = "', "colour: Extra inputs are not permitted"),
        ("'Sparse(XLA", "'(Sparse(XLA", "no regular expression"),
        ("## Remedy", "## Advice", "sections are"),
        ("## Probe", "## Remedy", "sections are"),
        ("```python", "```", "one fenced block"),
        ('id = "sparse-operators"', 'id = "other"', "the id must be the file's name"),
        ("## Cause", "Hello\n\n## Cause", "text before the first section"),
    ],
)
def test_a_damaged_entry_is_refused_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "sparse-operators.md"
    damaged = GOOD.replace(old, new, 1)
    assert damaged != GOOD
    path.write_text(damaged, encoding="utf-8")
    # A field that is not there has no line of its own: the first line stands for it.
    line = 1 if "required" in said else damaged[: damaged.index(new.splitlines()[0])].count("\n") + 1
    if "fenced" in said:
        line = GOOD.splitlines().index("## Probe") + 1
    if new == "## Remedy":
        line = len(GOOD[: GOOD.index("## Probe")].splitlines()) + 1
    with pytest.raises(UserError) as refused:
        read(path)
    assert refused.value.message.startswith(f"{path}:{line}: "), refused.value.message
    assert said in refused.value.message


def test_the_catalogue_is_read_from_the_product() -> None:
    assert len(entries()) == len(list(FOLDER.glob("*.md")))
