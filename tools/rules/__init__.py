"""The rules, found by file name: ``tpuNNN_*.py``, one class each; a new rule is one new file and nothing else."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache

from tools.errors import UserError
from tools.rules.base import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by ascending id.

    Raises:
        AssertionError: if two rules share an id, or a file's name does not match its rule.
    """
    found: list[Rule] = []
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("tpu"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        own = [
            c
            for c in vars(module).values()
            if isinstance(c, type) and c.__module__ == module.__name__ and issubclass(c, Rule)
        ]
        assert len(own) == 1, f"{info.name} must define exactly one rule"
        rule = own[0]()
        expected = f"{rule.ID.lower()}_{rule.NAME.replace('-', '_')}"
        assert info.name == expected, f"{info.name}.py should be called {expected}.py"
        found.append(rule)
    found.sort(key=lambda rule: rule.ID)
    assert len({rule.ID for rule in found}) == len(found), "two rules share an id"
    return tuple(found)


_ID = re.compile(r"TPU\d+")


class UnknownRule(UserError, ValueError):
    """No rule's id is, or begins with, what was asked for.

    Args:
        code: What was asked for.
    """

    def __init__(self, code: str) -> None:
        meant = likely(code)
        guess = f"; did you mean {meant.ID} ({meant.NAME})?" if meant else "."
        super().__init__(f"There is no rule '{code}'{guess}", "List them with: torchtpu-agent rules list")
        self.code = code


def likely(code: str) -> Rule | None:
    """The rule that was probably meant: by the case of its letters, or by its name; another number says nothing."""
    if _ID.fullmatch(code):
        return None
    known = {word: rule for rule in all_rules() for word in (rule.ID, rule.NAME.upper())}
    close = difflib.get_close_matches(code.upper().replace("_", "-"), known, n=1)
    return known[close[0]] if close else None


def selected(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Rule]:
    """The rules whose id starts with one of ``select`` (all if empty) and none of ``ignore``.

    Raises:
        UnknownRule: if a code matches no rule.
    """
    for code in (*select, *ignore):
        if not any(rule.ID.startswith(code) for rule in all_rules()):
            raise UnknownRule(code)
    return [
        rule
        for rule in all_rules()
        if (not select or rule.ID.startswith(tuple(select))) and not (ignore and rule.ID.startswith(tuple(ignore)))
    ]
