"""What is known of porting to TPUs, failures most of all: the entries in `prompts/knowledge/`, read and checked."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tools.errors import Exit, UserError

FOLDER = Path(__file__).resolve().parent.parent / "prompts" / "knowledge"
_FENCE = "+++"
_SECTIONS = ("Cause", "Remedy", "Probe")


class Blame(StrEnum):
    """Whose a failure is: the program's, the TPU backend's, the simulated device's, or the machine's set-up."""

    CODE = "code"
    BACKEND = "backend"
    SIMULATOR = "simulator"
    ENVIRONMENT = "environment"


class Symptom(BaseModel):
    """Regular expressions by the place they are looked for in; all that are given must be found."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    exception: str | None = Field(default=None, description="type and message, `RuntimeError: ...`")
    source: str | None = Field(default=None, description="the line of source that raised, the user's or a library's")
    warning: str | None = Field(default=None, description="a warning's message")
    native: str | None = Field(default=None, description="a line of the native log")
    output: str | None = Field(default=None, description="the end of what the program printed")
    losses: str | None = Field(default=None, description="what the losses did: `nan from step 3`, `constant`")
    outcome: str | None = Field(default=None, description="how the run ended: `hang`, `memory-limit`")

    @field_validator("*")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as problem:
                raise ValueError(f"no regular expression: {problem}") from problem
        return value

    def places(self) -> dict[str, str]:
        """The patterns that are given, by place."""
        return {name: pattern for name, pattern in self if pattern is not None}


class Entry(BaseModel):
    """One thing that can go wrong or is good to know: how it looks, why it is so and what to do.

    An entry without symptoms is advice: searched for, and never named as the cause of a failure. Its probe is a program
    that comes to its end where the fact holds; that of an entry with symptoms shows them.

    Attributes:
        id: the file's name without its suffix.
        general: whether other entries know better where they fit too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str = Field(min_length=1, max_length=120)
    symptoms: tuple[Symptom, ...] = ()
    owner: Blame
    rules: tuple[str, ...] = Field(default=(), description="rules that find the cause in the source")
    rows: tuple[str, ...] = Field(default=(), description="rows of tools/coverage.toml")
    versions: str = Field(default="", description="where it was seen")
    sources: tuple[str, ...] = ()
    general: bool = False
    cause: str = Field(min_length=1)
    remedy: str = Field(min_length=1)
    probe: str | None = Field(default=None, description="a small program that shows the symptom, or the fact")

    @field_validator("symptoms")
    @classmethod
    def _ask_something(cls, value: tuple[Symptom, ...]) -> tuple[Symptom, ...]:
        if any(not symptom.places() for symptom in value):
            raise ValueError("a symptom must ask for something")
        return value

    @model_validator(mode="after")
    def _supported(self) -> Entry:
        if not self.sources and self.probe is None and not self.symptoms:
            raise ValueError("advice needs a source or a probe")
        return self


@cache
def entries(folder: Path = FOLDER) -> tuple[Entry, ...]:
    """Every entry of a folder, by id.

    Raises:
        UserError: an entry is not well formed; the message names its file and line.
    """
    found = [read(path) for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    if not found:
        raise UserError(f"no knowledge entries in {folder}", "Install the package again.", Exit.INTERNAL)
    return tuple(found)


def read(path: Path) -> Entry:
    """One entry from its file.

    Raises:
        UserError: it is not well formed; the message names the file and line.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines[:1] != [_FENCE] or _FENCE not in lines[1:]:
        raise _wrong(path, 1, f"an entry begins with a TOML head between two lines of {_FENCE}")
    end = lines.index(_FENCE, 1)
    head = _head(path, lines[1:end])
    document = {**head, **_body(path, lines, end + 1)}
    try:
        entry = Entry.model_validate(document)
    except ValidationError as problem:
        first = problem.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise _wrong(path, _line_of(lines, first["loc"]), f"{name}: {first['msg']}") from problem
    if entry.id != path.stem:
        raise _wrong(path, _line_of(lines, ("id",)), f"the id must be the file's name, {path.stem!r}")
    return entry


def _head(path: Path, lines: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"line (\d+)", str(problem))
        line = int(place[1]) + 1 if place else len(lines) + 1
        raise _wrong(path, line, str(problem)) from problem


def _body(path: Path, lines: list[str], first: int) -> dict[str, str]:
    """The sections behind the head, under the field each stands for."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(lines[first:], first + 1):
        if line.startswith("## "):
            title = line[3:].strip()
            if title not in _SECTIONS or title.lower() in found:
                raise _wrong(path, number, f"sections are {', '.join(_SECTIONS)}, each at most once")
            current = found.setdefault(title.lower(), [])
        elif current is not None:
            current.append(line)
        elif line.strip():
            raise _wrong(path, number, "text before the first section")
    texts = {name: "\n".join(text).strip() for name, text in found.items()}
    if "probe" in texts:
        code = re.fullmatch(r"```python\n(.*?)\n```", texts["probe"], re.DOTALL)
        if code is None:
            raise _wrong(path, lines.index("## Probe") + 1, "a probe is one fenced block of python")
        texts["probe"] = code[1] + "\n"
    return {name: text if name == "probe" else " ".join(text.split()) for name, text in texts.items()}


def _line_of(lines: list[str], location: tuple[int | str, ...]) -> int:
    """The line a field stands on, the first line where it is absent."""
    name = str(location[0]) if location else ""
    headings = (f"{name} =", f"{name}=", f"## {name.capitalize()}")
    place = next((number for number, line in enumerate(lines, 1) if line.startswith(headings)), 1)
    item = location[1] if len(location) > 1 else None
    return place + 1 + item if isinstance(item, int) and lines[place - 1].endswith("[") else place


def _wrong(path: Path, line: int, what: str) -> UserError:
    return UserError(f"{path}:{line}: {what}", exit_code=Exit.INTERNAL)
