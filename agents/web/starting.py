"""Checks what a person fills in to start a migration or a chat, and makes the request of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.llm.settings import configured
from agents.runs import now
from agents.state import Request
from tools.errors import UserError

Device = Literal["auto", "hardware", "simulated", "cpu"]
_ADDRESS = re.compile(r"(?:https?|git|ssh)://[\w.\[\]@:-]*[\w\]][/:?#][^\s]*|git@[\w][\w.-]*:[^\s]+", re.ASCII)
_LONGEST = 4000


class StartRun(BaseModel):
    """A migration that is asked for."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(max_length=_LONGEST, description="absolute path of a folder, or a git URL")
    entries: list[str] = Field(default=[], max_length=20, description="commands that are run afterwards")
    steps: int | None = Field(default=None, ge=0, le=10**9, description="optimizer steps of each; 0 is to the end")
    target: str = Field(default="", max_length=100, description="TPU slice that a step is profiled for")
    device: Device = "auto"
    verify: bool = Field(default=True, description="compare with the original")
    unsafe_fixes: bool = False
    dry_run: bool = False
    model: str = Field(default="", max_length=200, description="language model for what rules leave")

    def request(self) -> Request:
        """The request of a run.

        Raises:
            UserError: The source, the target or the model cannot be used.
        """
        source = usable_source(self.source)
        return Request(
            source=source, created=now(), entries=_lines(self.entries), device=self.device, steps=self.steps,
            unsafe_fixes=self.unsafe_fixes, dry_run=self.dry_run, verify=self.verify,
            target=_target(self.target.strip()), model=usable_model(self.model, source),
        )  # fmt: skip


class StartChat(BaseModel):
    """A chat that is asked for."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(max_length=_LONGEST, description="absolute path of a folder, or a git URL")
    name: str = Field(default="", max_length=64)
    entries: list[str] = Field(default=[], max_length=20)
    mode: Literal["ask", "auto-safe", "read-only"] = "ask"
    device: Device = "auto"
    model: str = Field(default="", max_length=200)
    verify_steps: int | None = Field(default=None, ge=1, le=10**6)

    def request(self) -> Request:
        """The request of a session.

        Raises:
            UserError: The source cannot be used.
        """
        return Request(
            source=usable_source(self.source), created=now(), entries=_lines(self.entries), device=self.device,
            verify_steps=self.verify_steps,
        )  # fmt: skip


def usable_source(text: str) -> str:
    """The folder or the address that a text names.

    Raises:
        UserError: It is neither a folder that exists nor a git URL over http, https, ssh or git.
    """
    text = text.strip()
    if not text:
        raise UserError("No repository is given.", "Give the absolute path of a folder, or a git URL.")
    if _ADDRESS.fullmatch(text):
        return text
    path = _folder(text)
    if path is None:
        shown = text if len(text) < 200 else f"{text[:197]}..."
        raise UserError(
            f"{shown} is no folder on the server, and no git URL.",
            "Give an absolute path, or an address such as https://github.com/owner/project.",
        )
    return str(path.resolve())


def _folder(text: str) -> Path | None:
    try:
        path = Path(text).expanduser() if text.startswith("~") else Path(text)
        return path if path.is_absolute() and path.is_dir() else None
    except (ValueError, OSError, RuntimeError):  # a null byte, a name no file system takes, a user who is not there
        return None


def usable_model(name: str, source: str) -> str | None:
    """The model that is named, else the one that the server's environment names; None where there is none.

    Raises:
        UserError: It is named, but neither a key nor a server is set for it.
    """
    here = Path(source)
    chosen = configured(name.strip() or None, here if here.is_absolute() and here.is_dir() else None)
    return chosen.model if chosen else None


def default_model() -> str:
    """The model that the server's environment names."""
    name = os.environ.get("TORCHTPU_MODEL", "")
    return "" if name == "none" else name


def _target(name: str) -> str | None:
    from tools.profile import target_named

    return target_named(name).name if name else None


def _lines(entries: list[str]) -> list[str]:
    return [line.strip() for text in entries for line in text.splitlines() if line.strip()]
