"""Command lines taken apart."""

from __future__ import annotations

import os

import pytest

from tools.commands import missing_script, named_files, parse
from tools.errors import UserError


def test_variables_and_the_interpreter():
    command = parse("CUDA_VISIBLE_DEVICES=0 A='b c' python3.11 train.py --name 'x y'")
    assert command.env == {"CUDA_VISIBLE_DEVICES": "0", "A": "b c"}
    assert command.argv == ["python", "train.py", "--name", "x y"]


@pytest.mark.parametrize(
    "text", ["cd a && python b.py", "python a.py | tee log", "python a.py > x", "python $X.py", "A=1 python a.py; b"]
)
def test_what_needs_a_shell_gets_one(text):
    assert parse(text).argv == ["bash", "-c", text]


@pytest.mark.parametrize("text", ["python a.py 'x|y'", 'python -c "import os; print(1)"', r"python a.py a\;b"])
def test_quoted_signs_need_no_shell(text):
    assert not parse(text).is_shell


@pytest.mark.parametrize("text", ["", "  ", "A=1", "python 'x"])
def test_what_is_no_command(text):
    with pytest.raises(UserError):
        parse(text)


def test_files_that_a_command_names(tmp_path):
    for name in ("train.py", "conf.yaml", "pkg/mod.py", "go.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "go.sh").write_text("torchrun --nproc-per-node 2 \\\n  train.py # comment\n")
    assert named_files(parse("python train.py --config=conf.yaml"), tmp_path) == ["train.py", "conf.yaml"]
    assert named_files(parse("python -m pkg.mod"), tmp_path) == ["pkg/mod.py"]
    assert named_files(parse("bash go.sh"), tmp_path) == ["go.sh", "train.py"]
    assert named_files(parse("cd . && python train.py"), tmp_path) == ["train.py"]
    assert named_files(parse("python ../train.py /etc/passwd"), tmp_path / "pkg") == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [("python gone.py", "gone.py"), ("python -u gone.py", "gone.py"),
     ("torchrun --nproc-per-node 2 gone.py", "gone.py"),
     ("python -m x", None), ("python -c 'a'", None), ("python here.py gone.py", None), ("make", None),
     ("python -W ignore here.py", None)],
)  # fmt: skip
def test_a_script_that_is_not_there(tmp_path, text, missing):
    (tmp_path / "here.py").write_text("")
    assert missing_script(parse(text), tmp_path) == missing


def test_folders_to_import_from_come_before_what_is_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", "ours")
    first, second = tmp_path / "a", tmp_path / "b"
    path = parse("PYTHONPATH=src python train.py").importing([first, second]).env["PYTHONPATH"]
    assert path.split(os.pathsep) == [str(first), str(second), "src"]
    assert parse("python train.py").importing([first]).env["PYTHONPATH"].split(os.pathsep)[1:] == ["ours"]
    monkeypatch.delenv("PYTHONPATH")
    assert parse("python train.py").importing([first]).env == {"PYTHONPATH": str(first)}
    assert parse("python train.py").importing([]).env == {}
