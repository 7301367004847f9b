"""Who may have the bot do something: people with write access, checked each time."""

from __future__ import annotations

from urllib.parse import quote

from agents.bot.github import Place
from agents.bot.retrying import Refused

_ENOUGH = frozenset({"admin", "maintain", "write"})


def may_write(place: Place, login: str) -> bool:
    """Whether a person may push to a repository; somebody GitHub does not know may not."""
    try:
        found = place.send("GET", f"/collaborators/{quote(login)}/permission")
    except Refused as error:
        if error.status == 404:
            return False
        raise
    return found.get("permission") in _ENOUGH
