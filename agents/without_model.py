"""The answer to plain language where no model is configured: diagnosis of what looks like a failure, else search."""

from __future__ import annotations

import re

from agents.toolkit import diagnose, search_knowledge
from agents.toolkit.bench import Bench
from tools.log_text import read_text

_ABOUT_THE_RUN = re.compile(
    r"\b(?:why|what (?:happened|failed|is wrong|went wrong)|explain|reason|cause)\b", re.IGNORECASE
)
_WANTS_FIX = re.compile(r"\b(?:fix|repair|patch|migrate|port)\b", re.IGNORECASE)


def shows_failure(text: str) -> bool:
    """Whether a text is, or holds, the output of something that failed."""
    seen = read_text(text)
    return bool(seen.exception or seen.signal or seen.native_tail or seen.warnings)


def look_up(said: str, bench: Bench) -> str:
    """The answer to a text, from what is known."""
    if shows_failure(said):
        return diagnose.TOOL.call(diagnose.Input(text=said), bench).text
    last = bench.last_run
    if last is not None and not last.ended_well and (_ABOUT_THE_RUN.search(said) or _WANTS_FIX.search(said)):
        return f"{diagnose.TOOL.call(diagnose.Input(), bench).text}\n\nTo apply the fixes of rules: /patch; then /run"
    if _WANTS_FIX.search(said):
        return "To see what needs a change: /scan; to apply the fixes of rules: /patch; then /run and /verify"
    found = search_knowledge.TOOL.call(search_knowledge.Input(words=said[:2000] or " ", limit=3), bench)
    return found.text
