"""Amounts in messages: one file, two files."""

from __future__ import annotations


def amount(count: int, noun: str) -> str:
    """The count with its noun, which takes an s in the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
