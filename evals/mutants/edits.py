"""Reads the edits and lays a program out: the original, its migration, and the migration with one edit."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
CUDA = 'torch.device("cuda")'
CHOSEN = 'torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")'


class Edit(BaseModel):
    """One change of a migrated program.

    Attributes:
        program: Folder under `programs`.
        name: What it does.
        file: The file that is changed.
        find: Text in it, replaced once.
        replace: What it becomes.
        stages: Stages of which one at least must fail; none for a harmless change.
        device: Whether only a device shows it.
    """

    model_config = ConfigDict(extra="forbid")

    program: str
    name: str
    file: str
    find: str
    replace: str
    stages: list[str] = []
    device: bool = False

    @property
    def id(self) -> str:
        """Its name among all."""
        return f"{self.program}/{self.name}"

    @property
    def harmless(self) -> bool:
        """Whether it must be taken for the same program."""
        return not self.stages


def read() -> list[Edit]:
    """All edits: faults, then harmless ones."""
    data = tomllib.loads((HERE / "edits.toml").read_text(encoding="utf-8"))
    return [Edit.model_validate(item) for item in [*data["fault"], *data["harmless"]]]


def lay_out(edit: Edit, folder: Path) -> tuple[Path, Path]:
    """Write the original and the edited migration under `folder`, and return both."""
    original, migrated = folder / "original", folder / "migrated"
    ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    for tree in (original, migrated):
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(PROGRAMS / edit.program, tree, ignore=ignored)
    _replace(migrated / edit.file, edit.find, edit.replace)
    text = (migrated / "train.py").read_text(encoding="utf-8")
    (migrated / "train.py").write_text(text.replace(CUDA, CHOSEN), encoding="utf-8")
    return original, migrated


def _replace(path: Path, find: str, replace: str) -> None:
    text = path.read_text(encoding="utf-8")
    if find not in text:
        raise ValueError(f"{path.name} does not hold {find!r}")
    path.write_text(text.replace(find, replace, 1), encoding="utf-8")
