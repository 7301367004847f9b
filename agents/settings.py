"""Reads `torchtpu.toml` of a repository and lays the command line over it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.state import Request, Settings
from tools.errors import UserError
from tools.setting_errors import REMEDY, explain
from tools.settings import ScanSettings

FILE = "torchtpu.toml"
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """A number of bytes from text such as `8G`, `512MB` or `1.5 GiB` (units of 1024).

    Raises:
        ValueError: The text is no size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"'{text}' is no size; write it like 8G or 512M")
    return int(float(match[1]) * _UNITS[match[2].lower()])


class Limits(BaseModel):
    """The `[limits]` table."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, strict=True)

    steps: int | None = Field(default=None, ge=0)
    timeout: float | None = Field(default=None, gt=0)
    idle_timeout: float | None = Field(default=None, gt=0, alias="idle-timeout")
    memory: int | None = None

    @field_validator("memory", mode="before")
    @classmethod
    def _size(cls, value: object) -> object:
        return parse_size(value) if isinstance(value, str) else value


class Verify(BaseModel):
    """The `[verify]` table."""

    model_config = ConfigDict(extra="forbid")

    steps: int | None = Field(default=None, ge=1)


class ModelTable(BaseModel):
    """The `[model]` table: a name that counts where the user says `auto`, and limits, which it can only lower."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)


class RepositoryFile(BaseModel):
    """What a repository may say about itself.

    What is safe for the user's machine is not among it: device, interpreter and sandbox are chosen on
    the command line only.
    """

    model_config = ConfigDict(extra="forbid")

    entry: list[str] = []
    setup: list[str] = []
    select: list[str] = []
    ignore: list[str] = []
    limits: Limits = Limits()
    verify: Verify = Verify()
    model: ModelTable = ModelTable()
    scan: ScanSettings = ScanSettings()

    @field_validator("entry", "setup", "select", "ignore", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


def read(root: Path) -> RepositoryFile:
    """The settings file at `root`, or the defaults where there is none.

    Raises:
        UserError: It is not valid TOML or says something unknown.
    """
    path = root / FILE
    if not path.is_file() or path.is_symlink():
        return RepositoryFile()
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{FILE} is not valid TOML: {error}", REMEDY) from error
    try:
        return RepositoryFile.model_validate(values)
    except ValidationError as error:
        raise explain(FILE, text, error, RepositoryFile) from error


def combine(request: Request, file: RepositoryFile) -> Settings:
    """The command line where it says something, then the file, then the defaults."""
    defaults = Settings()
    limits = file.limits
    steps = next((s for s in (request.steps, limits.steps) if s is not None), defaults.steps)
    return Settings(
        entries=request.entries or file.entry,
        setup=request.setup or file.setup,
        select=request.select or file.select,
        ignore=[*request.ignore, *file.ignore],
        steps=steps,
        verify_steps=request.verify_steps or file.verify.steps or defaults.verify_steps,
        timeout=request.timeout or limits.timeout or defaults.timeout,
        idle_timeout=request.idle_timeout or limits.idle_timeout or defaults.idle_timeout,
        memory=request.memory or limits.memory,
    )
