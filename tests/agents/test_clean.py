"""Stage `clean` looks at the settings that the program reads, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.conftest import commit

TRAIN = """import torch
import yaml

options = yaml.safe_load(open("config.yaml"))
dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[options["precision"]]
with torch.autocast("cuda", dtype=dtype):
    pass
"""
HANDS_ON = """import accelerate
import yaml

accelerate.Accelerator(mixed_precision=yaml.safe_load(open("config.yaml"))["precision"])
"""


def clean(cli, repo, *more):
    document = json.loads(cli("migrate", repo, "--entry", "python train.py", "--dry-run", "--json", *more).out)
    (verdict,) = [v for v in document["verdicts"] if v["stage"] == "clean"]
    return verdict, document


def test_float16_of_a_setting_does_not_reach_autocast_on_a_tpu(cli, tmp_path):
    repo = commit(tmp_path / "repo", train_py=TRAIN, **{"config.yaml": "precision: fp16\n"})
    verdict, document = clean(cli, repo)
    patch = Path(document["delivery"]["patch"]).read_text()
    assert "dtype != torch.float16 else torch.bfloat16" in patch
    assert "+precision" not in patch
    assert verdict["result"] == "pass", verdict
    (left,) = [item for item in document["left"] if item["rule"] == "TPU822"]
    assert left["grade"] == "advice"


@pytest.mark.parametrize(("name", "result"), [("config.yaml", "fail"), ("unread.yaml", "pass")])
def test_float16_of_a_setting_that_the_program_hands_on_is_left(cli, tmp_path, name, result):
    files = {"config.yaml": "seed: 1\n", name: "precision: fp16\n"}
    verdict, _ = clean(cli, commit(tmp_path / "repo", train_py=HANDS_ON, **files))
    assert verdict["result"] == result, verdict
    assert ("config.yaml:1 TPU822" in verdict["reason"]) == (result == "fail")


def test_an_unsafe_fix_settles_it(cli, tmp_path):
    repo = commit(tmp_path / "repo", train_py=HANDS_ON, **{"config.yaml": "precision: fp16\n"})
    assert clean(cli, repo, "--unsafe-fixes")[0]["result"] == "pass"
