"""The parts that judge migrations of public repositories: a wrong judge would make every result worthless."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from evals import results
from evals.ecosystem import checkout, checks, data
from evals.ecosystem.projects import PROJECTS, Project
from evals.ecosystem.record import Record, page
from evals.task import commit_all


def write(tree: Path, text: str) -> Path:
    (tree / "train.py").write_text(text)
    return tree


def test_every_use_of_torch_tpu_is_found(tmp_path: Path) -> None:
    write(tmp_path, "import torch\ntorch.tpu.synchronize()\nx = torch.tpu.Stream\ntorch.accelerator.synchronize()\n")
    assert checks.tpu_names(tmp_path) == ["train.py:2 torch.tpu.synchronize", "train.py:3 torch.tpu.Stream"]


def test_imports_of_ours_are_found_in_every_form(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import torchtpu.device as d\nfrom torchtpu_agent import main\nfrom .torchtpu import x\nimport torch_tpu\n",
    )
    assert checks.our_imports(tmp_path) == ["train.py torchtpu.device", "train.py torchtpu_agent"]


def test_second_migration_names_the_rules_that_would_still_change_something(tmp_path: Path) -> None:
    write(tmp_path, "import torch\nx = torch.ones(2).cuda()\n")
    assert checks.second_migration(tmp_path) != []
    assert checks.second_migration(tmp_path) == []  # the first call applied them


def test_measures_are_losses_and_not_times() -> None:
    output = "step 3: loss 2.5000, time 12.50ms, norm: 1.25e-02\n"
    output += "Loss_D: 0.5 Loss_G: 1.5\nms/batch 4.25 | loss  3.10 | ppl 22.20"
    assert checks.measures(output) == [2.5, 0.0125, 0.5, 1.5, 3.1, 22.2]


def test_a_program_over_its_limit_is_stopped_with_its_children(tmp_path: Path) -> None:
    write(tmp_path, "import subprocess, sys\nprint('loss 1.5', flush=True)\nsubprocess.run(['sleep', '600'])\n")
    code, output = checks.run_on_cpu("python train.py", tmp_path, Path(sys.executable), time_limit=10)
    assert code is None
    assert checks.measures(output) == [1.5]


@pytest.mark.parametrize("change", ["file", "branch", "config", "index"])
def test_fingerprint_sees_every_kind_of_change(tmp_path: Path, change: str) -> None:
    write(tmp_path, "x = 1\n")
    commit_all(tmp_path, "first")
    before = checkout.fingerprint(tmp_path)
    assert checkout.fingerprint(tmp_path) == before
    if change == "file":
        write(tmp_path, "x = 2\n")
    elif change == "index":
        (tmp_path / "new.py").write_text("")
        subprocess.run(["git", "add", "new.py"], cwd=tmp_path, check=True)
    else:
        command = ["switch", "-q", "-c", "other"] if change == "branch" else ["config", "core.abbrev", "9"]
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert checkout.fingerprint(tmp_path) != before


def test_a_checkout_at_another_commit_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "sources" / "thing"
    source.mkdir(parents=True)
    commit_all(write(source, "x = 1\n"), "first")
    project = Project("thing", "owner/thing", "0" * 40, "python train.py", None, data.nothing)
    with pytest.raises(RuntimeError, match="not at the pinned"):
        checkout.make(project, tmp_path / "out", tmp_path / "sources")


def test_character_data_decodes_to_the_text(tmp_path: Path) -> None:
    (tmp_path / "data/shakespeare_char").mkdir(parents=True)
    data.nanogpt_characters(tmp_path)
    folder = tmp_path / "data/shakespeare_char"
    meta = pickle.loads((folder / "meta.pkl").read_bytes())
    raw = (folder / "train.bin").read_bytes()
    codes = struct.unpack(f"<{len(raw) // 2}H", raw)
    assert data.prose(60_000).startswith("".join(meta["itos"][c] for c in codes[:500]))


def test_mnist_files_have_the_declared_sizes(tmp_path: Path) -> None:
    data.mnist("data", num_train=5, num_test=3)(tmp_path)
    raw = (tmp_path / "data/MNIST/raw/train-images-idx3-ubyte").read_bytes()
    assert struct.unpack(">IIII", raw[:16]) == (0x803, 5, 28, 28)
    assert len(raw) == 16 + 5 * 784


WHOLE = {
    "commit": "c",
    "entry": "python train.py",
    "stages": {"parses": ("pass", ""), "clean": ("pass", ""), "runs": ("pass", "")},
    "second_migration": [],
    "checkout_unchanged": True,
    "cpu_original": "ok",
    "cpu_migrated": "ok",
    "cpu_same": True,
    "cpu_compared": 3,
}


def record(name: str, **changes: object) -> Record:
    return Record.model_validate({"name": name, "repository": f"o/{name}", **WHOLE, **changes})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stages": {**WHOLE["stages"], "clean": ("fail", "1 left")}}, "clean: fail (1 left)"),
        ({"stages": {"parses": ("pass", "")}}, "runs: not run"),
        ({"fault": "no report (exit 5)"}, "no report (exit 5)"),
        ({"tpu_names": ["a.py:1 torch.tpu.x"]}, "uses a.py:1 torch.tpu.x"),
        ({"our_imports": ["a.py torchtpu"]}, "imports a.py torchtpu"),
        ({"second_migration": ["TPU101"]}, "a second migration: TPU101"),
        ({"second_migration": None}, "a second migration: not tried"),
        ({"checkout_unchanged": False}, "the checkout was changed"),
        ({"checkout_unchanged": None}, "checkout not looked at"),
        ({"cpu_migrated": "exit 1"}, "the migrated program on the CPU: exit 1 (the original: ok)"),
        ({"cpu_migrated": "stopped"}, "the migrated program on the CPU: stopped (the original: ok)"),
        ({"cpu_same": False}, "numbers on the CPU: they differ"),
        ({"cpu_same": None}, "numbers on the CPU: not compared"),
    ],
)
def test_what_does_not_hold_is_said(change: dict[str, object], said: str) -> None:
    assert record("a").shortfalls() == []
    assert record("a", cpu_original="stopped", cpu_migrated="stopped").shortfalls() == []
    judged = record("a", **change)
    assert said in judged.shortfalls()
    assert f"- a: {said}" in page([judged])


def test_page_counts_only_what_passed() -> None:
    hung = record("b", stages={**WHOLE["stages"], "runs": ("fail", "it hung")})
    text = page([record("a"), hung, record("c", cpu_same=False)])
    assert "2 of 3 reach `runs: pass`; for 1 everything in the table holds" in text
    assert "Nothing." not in text
    assert "Nothing." in page([record("a")])


def test_published_page_is_the_one_its_figures_make() -> None:
    records = [Record.model_validate(item) for item in results.read("ecosystem")]
    assert [r.name for r in records] == [p.name for p in PROJECTS]
    assert {r.name: r.commit for r in records} == {p.name: p.commit for p in PROJECTS}
    assert (results.FOLDER / "ecosystem.md").read_text(encoding="utf-8") == page(records)


def test_projects_are_pinned_and_named_once() -> None:
    assert len({p.name for p in PROJECTS}) == len(PROJECTS)
    assert all(len(p.commit) == 40 for p in PROJECTS)
