"""The rules for a folder: what its `torchtpu.toml` says, under what a command line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.errors import UserError
from tools.rules import UnknownRule, selected
from tools.rules.base import Rule
from tools.settings import FILE, ScanSettings, read_settings


def choose(root: Path, select: Sequence[str], ignore: Sequence[str]) -> tuple[ScanSettings, list[Rule]]:
    """The settings and the rules that hold.

    Raises:
        UnknownRule: A code of the command line matches no rule.
        UserError: The folder's `torchtpu.toml` cannot be used.
    """
    settings = read_settings(root).with_codes(select, ignore)
    try:
        selected(ignore=[code for codes in settings.per_file_ignores.values() for code in codes])
        return settings, selected(settings.select, settings.ignore)
    except UnknownRule as error:
        line = _line_of(root, error.code)
        if line is None:
            raise
        raise UserError(f"{FILE}:{line}: {error.message}", error.remedy, error.exit_code) from error


def _line_of(root: Path, code: str) -> int | None:
    """Where the file names a code; None where it does not."""
    try:
        lines = (root / FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    return next((n for n, line in enumerate(lines, 1) if f'"{code}"' in line or f"'{code}'" in line), None)
