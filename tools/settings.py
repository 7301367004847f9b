"""What a repository asks of the scanner: the `[scan]` table of its `torchtpu.toml`."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import UserError
from tools.setting_errors import explain

FILE = "torchtpu.toml"


class ScanSettings(BaseModel):
    """The `[scan]` table.

    Attributes:
        select: rule ids or prefixes to run; all if empty.
        ignore: rule ids or prefixes to leave out.
        exclude: patterns of files and folders that are not looked at, such as ``third_party`` or ``*_pb2.py``.
        per_file_ignores: rule ids or prefixes to leave out, by pattern.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = Field(default={}, alias="per-file-ignores")

    def with_codes(self, select: Sequence[str], ignore: Sequence[str]) -> ScanSettings:
        """These settings under a command line: its ``select`` replaces theirs, its ``ignore`` adds to theirs."""
        return self.model_copy(update={"select": tuple(select) or self.select, "ignore": (*self.ignore, *ignore)})

    def excludes(self, path: str) -> bool:
        """Whether a file, or a folder it is in, matches ``exclude``."""
        return any(matches(path, pattern) for pattern in self.exclude)

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Codes left out in one file."""
        return tuple(
            code for pattern, codes in self.per_file_ignores.items() if matches(path, pattern) for code in codes
        )


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern fits a POSIX path, one of its parent folders, or (without a slash) the name of any of these."""
    pattern = pattern.strip("/")
    parts = path.split("/")
    if "/" not in pattern and any(fnmatch.fnmatchcase(part, pattern) for part in parts):
        return True
    return any(fnmatch.fnmatchcase("/".join(parts[:end]), pattern) for end in range(1, len(parts) + 1))


def read_settings(root: Path) -> ScanSettings:
    """The settings a repository carries; empty where it has no `torchtpu.toml` or no `[scan]` table in it.

    Raises:
        UserError: if the file is not TOML, or the table says something unknown.
    """
    try:
        text = (root / FILE).read_text(encoding="utf-8")
        table = tomllib.loads(text).get("scan", {})
    except (FileNotFoundError, NotADirectoryError):
        return ScanSettings()
    except (OSError, ValueError) as error:
        raise UserError(f"{FILE} cannot be read: {error}") from error
    try:
        return ScanSettings.model_validate(table)
    except ValidationError as error:
        raise explain(FILE, text, error, ScanSettings, "scan") from error
