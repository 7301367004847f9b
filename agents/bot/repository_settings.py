"""Reads `.github/torchtpu.yml` of a repository: what the bot does there unasked, and the defaults of its commands."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent

FILE = ".github/torchtpu.yml"
_MOST_BYTES = 64 * 1024


class SettingsError(Exception):
    """The file cannot be used; the text says where and why, in Markdown."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class Migrate(_Part):
    """Defaults of the commands that run programs."""

    entry: list[str] = Field(default=[], max_length=20)
    steps: int | None = Field(default=None, ge=0, le=10**6)
    verify: bool = True
    verify_steps: int | None = Field(default=None, ge=1, le=10**6, alias="verify-steps")
    target: str | None = Field(default=None, max_length=40)
    unsafe_fixes: bool = Field(default=False, alias="unsafe-fixes")
    select: list[str] = []
    ignore: list[str] = []

    @field_validator("entry", "select", "ignore", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


class PullRequests(_Part):
    """What happens when a pull request is opened or changed."""

    scan: bool = True
    anyone: bool = Field(default=False, description="also those of people without write access, and of forks")
    fail: bool = Field(default=True, description="a finding makes the check fail; else it is neutral")


class Push(_Part):
    """What happens when the default branch moves."""

    scan: bool = False


class Budget(_Part):
    """Limits below those of the server."""

    jobs: int = Field(default=10**6, ge=0, description="long jobs in 24 hours")


class RepositorySettings(_Part):
    """The file."""

    version: Literal[1] = 1
    migrate: Migrate = Migrate()
    pull_requests: PullRequests = Field(default=PullRequests(), alias="pull-requests")
    push: Push = Push()
    sarif: bool = True
    budget: Budget = Budget()


def read(data: bytes | None) -> RepositorySettings:
    """The settings in a file's bytes, or the defaults where there is none.

    Raises:
        SettingsError: It is no YAML, says something unknown, or is too large.
    """
    if data is None:
        return RepositorySettings()
    if len(data) > _MOST_BYTES:
        raise SettingsError(f"`{FILE}` has more than {_MOST_BYTES} bytes.")
    try:
        text = data.decode("utf-8")
        if any(isinstance(event, AliasEvent) for event in YAML(typ="safe", pure=True).parse(text)):
            raise SettingsError(f"`{FILE}` uses aliases (`*name`), which are not read.")
        values = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise SettingsError(f"`{FILE}` is no YAML: {_one_line(error)}") from error
    if values is None:
        return RepositorySettings()
    try:
        return RepositorySettings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    lines = [f"`{FILE}` cannot be used:", ""]
    for one in error.errors(include_url=False, include_context=False)[:10]:
        where = ".".join(str(part) for part in one["loc"]) or "the file"
        said = "is not known" if one["type"] == "extra_forbidden" else one["msg"][0].lower() + one["msg"][1:]
        lines.append(f"- `{where.replace('`', ' ')[:100]}`: {said}")
    return "\n".join(lines)


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = str(getattr(error, "problem", None) or error).splitlines()[0]
    kept = "".join(letter for letter in said if letter.isalnum() or letter in " ,.:'-")[:200]
    return f"{kept} (line {mark.line + 1})" if mark is not None else kept
