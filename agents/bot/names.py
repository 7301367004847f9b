"""Which names of owners, repositories, branches, people and commits are taken from GitHub."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}|[A-Za-z0-9_-]{0,38})", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98})(?:\[bot\])?", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_DELIVERY = re.compile(r"[0-9A-Za-z-]{8,64}", re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|\.lock$|/\.|\.lock/")


def owner(text: str) -> str:
    """The name of a user or an organisation.

    Raises:
        ValueError: It is none.
    """
    return _checked(_OWNER, text, "owner")


def repository(text: str) -> str:
    """The name of a repository, which is also the name of a folder.

    Raises:
        ValueError: It is none, or one that leads out of a folder.
    """
    if text in {".", ".."} or text.lower().endswith(".git") or text.startswith("-"):
        raise ValueError("is no name of a repository")
    return _checked(_REPOSITORY, text, "repository")


def login(text: str) -> str:
    """The name of a person or a bot.

    Raises:
        ValueError: It is none.
    """
    return _checked(_LOGIN, text, "person")


def sha(text: str) -> str:
    """The id of a commit.

    Raises:
        ValueError: It is none.
    """
    return _checked(_SHA, text, "commit")


def delivery(text: str) -> str:
    """The id of a delivery.

    Raises:
        ValueError: It is none.
    """
    return _checked(_DELIVERY, text, "delivery")


def branch(text: str) -> str:
    """The name of a branch, by git's own rules and without what a command line could take for an option.

    Raises:
        ValueError: It is none.
    """
    if not text or text == "@" or len(text) > 244 or _FORBIDDEN.search(text):
        raise ValueError("is no name of a branch")
    return text


def _checked(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"is no name of a {what}")
    return text


Owner = Annotated[str, AfterValidator(owner)]
Repository = Annotated[str, AfterValidator(repository)]
Login = Annotated[str, AfterValidator(login)]
Sha = Annotated[str, AfterValidator(sha)]
Branch = Annotated[str, AfterValidator(branch)]
