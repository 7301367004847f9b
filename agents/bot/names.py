"""Which names of owners, repositories, branches, people and commits are taken from GitHub."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from pydantic import AfterValidator

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,98}(?:\[bot\])?", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_DELIVERY = re.compile(r"[0-9A-Za-z-]{8,64}", re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|\.lock$|/\.|\.lock/")


def _checked(pattern: re.Pattern[str], what: str, text: str) -> str:
    """A name.

    Raises:
        ValueError: It is none.
    """
    if not pattern.fullmatch(text):
        raise ValueError(f"is no name of a {what}")
    return text


owner = partial(_checked, _OWNER, "owner")
login = partial(_checked, _LOGIN, "person")
sha = partial(_checked, _SHA, "commit")
delivery = partial(_checked, _DELIVERY, "delivery")


def repository(text: str) -> str:
    """The name of a repository, which is also the name of a folder.

    Raises:
        ValueError: It is none, or one that leads out of a folder.
    """
    if text in {".", ".."} or text.lower().endswith(".git") or text.startswith("-"):
        raise ValueError("is no name of a repository")
    return _checked(_REPOSITORY, "repository", text)


def branch(text: str) -> str:
    """The name of a branch, by git's own rules and without what a command line could take for an option.

    Raises:
        ValueError: It is none.
    """
    if not text or text == "@" or len(text) > 244 or _FORBIDDEN.search(text):
        raise ValueError("is no name of a branch")
    return text


Owner = Annotated[str, AfterValidator(owner)]
Repository = Annotated[str, AfterValidator(repository)]
Login = Annotated[str, AfterValidator(login)]
Sha = Annotated[str, AfterValidator(sha)]
Branch = Annotated[str, AfterValidator(branch)]
