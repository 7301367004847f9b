"""What a comment asks for: the first line, read into a typed command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

TRIGGER = "/torchtpu"
_LONGEST = 2000
_RULES = re.compile(r"[A-Za-z]{1,10}[0-9]{0,6}", re.ASCII)
_TARGET = re.compile(r"[a-z0-9]{1,12}(?:[-:][a-z0-9]{1,12})?", re.ASCII)
_FINDING = re.compile(
    r"#?[0-9]{1,6}|[A-Z]{1,10}[0-9]{1,6}|[^\s:]{1,300}:[0-9]{1,7}(?::[A-Z]{1,10}[0-9]{1,6})?", re.ASCII
)

Name = Literal["migrate", "scan", "verify", "profile", "explain", "fix", "status", "stop", "help"]


class Command(BaseModel):
    """One command and its options."""

    model_config = ConfigDict(frozen=True)

    name: Name
    subject: str = Field(default="", description="the target of profile, the finding of fix, the rule of explain")
    entries: list[str] = []
    steps: int | None = None
    verify_steps: int | None = None
    select: list[str] = []
    ignore: list[str] = []
    target: str | None = None
    unsafe_fixes: bool = False
    verify: bool = True
    dry_run: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it clones the repository, so that it waits for its turn and counts on the budget."""
        return self.name in {"migrate", "scan", "verify", "profile", "fix"}


class CommandError(Exception):
    """A comment that is meant for us and cannot be followed; its text is for the person."""


def parse(body: str) -> Command | None:
    """The command of a comment, or None where it is not for us.

    Raises:
        CommandError: The command or one of its options is not known.
    """
    first = body.split("\n", 1)[0].strip()
    if not re.match(rf"{re.escape(TRIGGER)}(?:\s|$)", first):
        return None
    if len(first) > _LONGEST:
        raise CommandError(f"The line is longer than {_LONGEST} characters.")
    try:
        words = shlex.split(first)[1:]
    except ValueError as error:
        raise CommandError(f"The line cannot be read: {error}.") from error
    if any(not word.isprintable() for word in words):
        raise CommandError("The line holds characters that cannot be printed.")
    if not words:
        return Command(name="help")
    name, rest = words[0].lower(), words[1:]
    if name not in _SUBJECTS:
        raise CommandError(f"There is no command `{shown(name)}`.")
    return _command(name, rest)


def shown(text: str) -> str:
    """A person's own word, fit to stand in a code span of our answer and to mention nobody."""
    kept = "".join(letter if letter.isalnum() or letter in "-_.:/=#" else " " for letter in text)
    return " ".join(kept.split())[:60]


def _command(name: str, words: Sequence[str]) -> Command:
    values: dict[str, object] = {"name": name}
    subjects: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-"):
            subjects.append(word)
            at += 1
            continue
        option, sep, joined = word.partition("=")
        at += 1 + _option(name, option, joined if sep else None, words[at + 1 :], values)
    values["subject"] = _subject(name, subjects)
    if name == "profile":
        values["target"] = values["subject"]
    return Command.model_validate(values)


def _option(
    command: str, option: str, joined: str | None, rest: Sequence[str], values: dict[str, object]
) -> Literal[0, 1]:
    """Take one option in; how many of the words behind it were its value."""
    if option in _FLAGS and command in _FLAGS[option][0]:
        if joined is not None:
            raise CommandError(f"`{option}` takes no value.")
        values[_FLAGS[option][1]] = _FLAGS[option][2]
        return 0
    if option not in _OPTIONS or command not in _OPTIONS[option][0]:
        raise CommandError(f"`{command}` has no option `{shown(option)}`.")
    text = joined if joined is not None else (rest[0] if rest else None)
    if not text:
        raise CommandError(f"`{option}` needs a value.")
    _, field, read = _OPTIONS[option]
    value = read(option, text)
    before = values.get(field, [])
    values[field] = [*before, *value] if isinstance(value, list) and isinstance(before, list) else value
    return 0 if joined is not None else 1


def _subject(name: str, subjects: list[str]) -> str:
    needed, pattern, what = _SUBJECTS[name]
    if len(subjects) > (pattern is not None):
        raise CommandError(f"`{name}` does not take `{shown(subjects[-1])}`.")
    if not subjects:
        if needed:
            raise CommandError(f"`{name}` needs {what}.")
        return ""
    if pattern is not None and not pattern.fullmatch(subjects[0]):
        raise CommandError(f"`{shown(subjects[0])}` is not {what}.")
    return subjects[0]


def _text(_option: str, text: str) -> list[str]:
    return [text]


def _number(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII):
        raise CommandError(f"`{option}` takes a number.")
    return int(text)


def _one_or_more(option: str, text: str) -> int:
    number = _number(option, text)
    if number < 1:
        raise CommandError(f"`{option}` takes a number from 1.")
    return number


def _rules(option: str, text: str) -> list[str]:
    codes = [code.strip() for code in text.split(",") if code.strip()]
    if not codes or not all(_RULES.fullmatch(code) for code in codes):
        raise CommandError(f"`{option}` takes rule ids by commas, such as TPU101,TPU2.")
    return [code.upper() for code in codes]


def _target(option: str, text: str) -> str:
    if not _TARGET.fullmatch(text):
        raise CommandError(f"`{option}` takes a TPU slice such as v6e-8.")
    return text


_SUBJECTS: dict[str, tuple[bool, re.Pattern[str] | None, str]] = {
    "migrate": (False, None, ""),
    "scan": (False, None, ""),
    "verify": (False, None, ""),
    "profile": (True, _TARGET, "a TPU slice such as v6e-8"),
    "explain": (False, _FINDING, "a rule such as TPU101, or the number of a finding"),
    "fix": (True, _FINDING, "the number of a finding, a rule, or file:line"),
    "status": (False, None, ""),
    "stop": (False, None, ""),
    "help": (False, None, ""),
}
_RUNNING = frozenset({"migrate", "verify", "profile"})
_READING = frozenset({"migrate", "scan"})
_FLAGS: dict[str, tuple[frozenset[str], str, bool]] = {
    "--unsafe-fixes": (frozenset({"migrate", "fix"}), "unsafe_fixes", True),
    "--no-verify": (frozenset({"migrate"}), "verify", False),
    "--dry-run": (frozenset({"migrate"}), "dry_run", True),
}
_OPTIONS: dict[str, tuple[frozenset[str], str, Callable[[str, str], object]]] = {
    "--entry": (_RUNNING, "entries", _text),
    "-e": (_RUNNING, "entries", _text),
    "--steps": (frozenset({"migrate"}), "steps", _number),
    "--verify-steps": (frozenset({"migrate", "verify"}), "verify_steps", _one_or_more),
    "--select": (_READING, "select", _rules),
    "--ignore": (_READING, "ignore", _rules),
    "--target": (frozenset({"migrate"}), "target", _target),
}

HELP = f"""\
The first line of a comment is a command:

| command | what it does |
|---|---|
| `{TRIGGER} migrate` | migrates the repository on a branch and opens a draft pull request with the evidence; \
`--entry "python train.py"`, `--steps N`, `--target v6e-8`, `--unsafe-fixes`, `--select`, `--ignore`, \
`--no-verify`, `--verify-steps N`, `--dry-run` |
| `{TRIGGER} scan` | says what needs a change, and changes nothing; `--select`, `--ignore` |
| `{TRIGGER} verify` | on a pull request: whether it computes the same as its base; `--entry`, `--verify-steps N` |
| `{TRIGGER} profile <target>` | whether a step fits a slice such as `v6e-8`, and how long it takes; `--entry` |
| `{TRIGGER} explain [rule or number]` | why a rule matters, or what the last job in this thread found |
| `{TRIGGER} fix <number, rule or file:line>` | fixes one finding of the last job in this thread |
| `{TRIGGER} status` | the jobs of this thread |
| `{TRIGGER} stop` | stops them |
| `{TRIGGER} help` | this text |

Only people with write access are answered."""
