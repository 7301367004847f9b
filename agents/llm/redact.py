"""Takes secrets out of what is sent to a model or written to a trajectory."""

from __future__ import annotations

import os
import re

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.I)
_SHORTEST = 8
HIDDEN = "[secret left out]"
_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"
    r"|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bhf_[A-Za-z0-9]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}|\bxox[abpr]-[A-Za-z0-9-]{10,}|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    re.DOTALL,
)
_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@")
_ASSIGNED = re.compile(
    r"(?i)(\b\w*(?:api_?key|access_?key|secret|passw(?:or)?d|auth_?token|access_?token)\w*['\"]?\s*[:=]\s*['\"])([^'\"\s]{8,})(['\"])"
)
_BEARER = re.compile(r"(?i)(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic)\s+)[\w.+/=-]{8,}")


def redact(text: str) -> str:
    """The text without keys, tokens and passwords: values of this process's own variables, and known forms of them."""
    for value in _own_values():
        text = text.replace(value, HIDDEN)
    text = _FORMS.sub(HIDDEN, text)
    text = _ADDRESS.sub(rf"\1{HIDDEN}@", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(rf"\1{HIDDEN}\3", text)


def _own_values() -> list[str]:
    values = {value for name, value in os.environ.items() if _NAMES.search(name) and len(value) >= _SHORTEST}
    # A path is no secret, and would make every message about it unreadable.
    return sorted((value for value in values if not value.startswith("/")), key=len, reverse=True)
