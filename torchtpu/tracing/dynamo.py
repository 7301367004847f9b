"""Graph breaks and recompilations of torch.compile, as its own logs tell them, with the user's lines."""

from __future__ import annotations

import logging
import re
from typing import Any

from torchtpu.inject import frames, imports

_LOGS = (
    "torch._dynamo.symbolic_convert.__graph_breaks",
    "torch._dynamo.convert_frame.__graph_breaks",
    "torch._dynamo.exc.__graph_breaks",
    "torch._dynamo.guards.__recompiles",
)
_PLACE = re.compile(r"(?:user code at|[Rr]ecompiling function \S+ in) (?P<file>.+?):(?P<line>\d+)")
_MOST = 1000


def place(text: str) -> str:
    """The user's ``file:line`` that a message names."""
    found = _PLACE.search(text)
    if found is None:
        return ""
    return f"{frames.describe(found['file'], int(found['line']), '')['file']}:{found['line']}"


def break_reason(text: str) -> str:
    """What a message says of why a graph ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("Explanation:")), "")
    why = next((line for line in lines if "Reason:" in line), lines[-1] if lines else "")
    return (told.removeprefix("Explanation:") or why.partition("Reason:")[2] or why).strip()[:300]


def guard_failures(text: str) -> list[str]:
    """The guards that failed, each once, the newest program first."""
    found = re.findall(r"^\s+- \d+/\d+: (.*)$", text, re.MULTILINE)
    return list(dict.fromkeys(line.strip()[:300] for line in found))


class Logs(logging.Handler):
    """Gathers the messages.

    Attributes:
        breaks: By place and reason, how often.
        recompiles: One each: place, step and the guards that failed.
    """

    def __init__(self, step: Any) -> None:
        super().__init__(logging.DEBUG)
        self._step = step
        self.breaks: dict[tuple[str, str], int] = {}
        self.recompiles: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Takes in one message."""
        text = record.getMessage()
        if record.name.endswith("__recompiles"):
            if len(self.recompiles) < _MOST:
                causes = guard_failures(text)
                self.recompiles.append({"place": place(text), "step": self._step(), "causes": causes[:3]})
        elif text.startswith("Graph break") and len(self.breaks) < _MOST:
            key = place(text), break_reason(text)
            self.breaks[key] = self.breaks.get(key, 0) + 1

    def install(self) -> None:
        """Listens from the import of torch.compile's front end on; what it logs is not printed for it."""
        imports.after_import("torch._dynamo.convert_frame", lambda _module: self._listen())

    def _listen(self) -> None:
        from torch._logging import _internal

        # Why a guard failed is looked into only where this one is asked for.
        _internal.log_state.enable_artifact("recompiles")
        for name in _LOGS:
            logger = logging.getLogger(name)
            if not logger.isEnabledFor(logging.DEBUG):
                logger.propagate = False
            logger.setLevel(logging.DEBUG)
            logger.addHandler(self)
