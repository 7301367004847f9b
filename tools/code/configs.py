"""Settings in YAML, JSON, TOML and INI files as key, value and exact place, without a parser's loss of formatting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.code.source import SourceFile

FILES = ("*.yaml", "*.yml", "*.json", "*.jsonc", "*.toml", "*.ini", "*.cfg")

_PAIR = re.compile(
    r"(?P<key_quote>[\"']?)(?P<key>[A-Za-z_][\w.-]*)(?P=key_quote)[ \t]*[:=][ \t]*"
    r"(?P<quote>[\"']?)(?P<value>[\w.:+-]+)(?P=quote)(?=[ \t]*(?:[,}\]]|[ \t][#;]|\r?$))",
    re.MULTILINE,
)
_BEFORE = re.compile(r"[ \t]*(?:-[ \t]+)*$|.*[{,\[][ \t]*$")


@dataclass(frozen=True)
class Setting:
    """One scalar setting on one line.

    Attributes:
        key: its own key, without those around it.
        value: without quotes.
        start: offset of the value, quotes left out.
        end: offset after it.
    """

    key: str
    value: str
    start: int
    end: int

    @property
    def normal_key(self) -> str:
        """The last part of a dotted key, in lower case, with underscores."""
        return self.key.rpartition(".")[2].replace("-", "_").lower()


def settings(source: SourceFile) -> Iterator[Setting]:
    """Every setting with a plain value, by position; comments have none."""
    for match in _PAIR.finditer(source.text):
        line, column = source.position(match.start())
        before = source.line(line)[: column - 1]
        if _BEFORE.match(before) and not before.lstrip().startswith(("#", ";", "//")) and " #" not in before:
            yield Setting(match.group("key"), match.group("value"), match.start("value"), match.end("value"))
