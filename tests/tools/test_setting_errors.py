"""What is wrong in torchtpu.toml is said with its line, and with what was probably meant."""

from __future__ import annotations

import pytest

from tests.agents.conftest import TRAIN
from tools.errors import UserError
from tools.rules import UnknownRule, selected
from tools.scan import scan
from tools.setting_errors import line_of


@pytest.fixture
def said(tmp_path):
    """What `scan` and `migrate` say of a settings file; both have to refuse it."""
    from agents import settings

    def say(text: str) -> str:
        (tmp_path / "torchtpu.toml").write_text(text)
        (tmp_path / "train.py").write_text(TRAIN)
        with pytest.raises(UserError) as caught:
            use()
        return caught.value.message

    def use() -> None:
        file = settings.read(tmp_path)
        scan(tmp_path, select=file.select, ignore=file.ignore)

    return say


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entri = 'x'", "torchtpu.toml:1: there is no setting 'entri'; did you mean 'entry'?"),
        ("\nsteps = 3", "torchtpu.toml:2: there is no setting 'steps'; it belongs in [limits]"),
        ("[limits]\nstep = 3", "torchtpu.toml:2: there is no setting 'step' in [limits]; did you mean 'steps'?"),
        ("[limits]\nidle_tiemout = 3", "did you mean 'idle-timeout'?"),
        ("limits.steps = true", "torchtpu.toml:1: [limits] steps = True: input should be a valid integer"),
        ("[limits]\n# five\nsteps = 'five'", "torchtpu.toml:3: [limits] steps = 'five'"),
        ("[limits]\nmemory = 'much'", "torchtpu.toml:2: [limits] memory = 'much': 'much' is no size"),
        ("[scan]\nexlude = ['x']", "torchtpu.toml:2: there is no setting 'exlude' in [scan]; did you mean 'exclude'?"),
        ("entry = 'a'\nentry = 'b'\n", "at line 2"),
        ("ignore = [\n  'TPU1',\n  'tpu202',\n]", "torchtpu.toml:3: There is no rule 'tpu202'; did you mean TPU202"),
        ("[scan.per-file-ignores]\n'a.py' = ['TPU7999']", "torchtpu.toml:2: There is no rule 'TPU7999'."),
        ("scan = 3", "torchtpu.toml:1: scan = 3"),
    ],
)
def test_the_line_and_what_was_meant(said, text, message):
    assert message in said(text)


@pytest.mark.parametrize(
    ("place", "line"),
    [(["limits", "steps"], 5), (["limits", "absent"], 4), (["scan", "per_file_ignores", "*.x"], 8), (["absent"], None)],
)
def test_lines_of_keys(place, line):
    text = "# limits\nentry = 'x'\n\n[limits]\nsteps = 1\n\n[scan.per-file-ignores]\n'*.x' = []\n"
    assert line_of(text, place) == line


@pytest.mark.parametrize(
    ("code", "meant"),
    [("tpu101", "TPU101"), ("choose-accelarator", "TPU101"), ("choose_accelerator", "TPU101"), ("TPU100", None)],
)
def test_a_rule_is_guessed_by_its_name_and_not_by_its_number(code, meant):
    with pytest.raises(UnknownRule) as caught:
        selected([code])
    assert ("did you mean" in caught.value.message) == (meant is not None)
    assert meant is None or meant in caught.value.message


def test_the_command_line_is_not_laid_to_the_file(tmp_path):
    (tmp_path / "torchtpu.toml").write_text("ignore = ['TPU1']\n")
    with pytest.raises(UnknownRule) as caught:
        scan(tmp_path, select=["xyz"])
    assert caught.value.message == "There is no rule 'xyz'."
