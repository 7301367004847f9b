"""Turns a command line that a person wrote into a program to start and the files it names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from tools.errors import UserError

_SHELL = re.compile(r"[|&;<>()`*?\n]|\$\(|\$\{?\w|^\s*(?:cd|export|source|set)\s")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "uv", "poetry", "pipenv"}
_VALUED = {"-W", "-X", "-c", "--check-hash-based-pycs"}


class Command(BaseModel):
    """A command line, taken apart.

    Attributes:
        text: As it was written.
        argv: The program and its arguments; a shell where the text needs one.
        env: Variables set in front of the command.
    """

    text: str
    argv: list[str]
    env: dict[str, str] = {}

    @property
    def is_shell(self) -> bool:
        """Whether a shell has to read the text."""
        return self.argv[:2] == ["bash", "-c"]

    @property
    def is_python(self) -> bool:
        """Whether an interpreter is started directly."""
        return bool(_PYTHON.fullmatch(PurePosixPath(self.argv[0]).name))

    def importing(self, folders: Sequence[Path]) -> Command:
        """The command with these folders first on PYTHONPATH, before what it or our own environment has there."""
        if not folders:
            return self
        present = self.env.get("PYTHONPATH") or os.environ.get("PYTHONPATH")
        path = os.pathsep.join([*map(str, folders), *([present] if present else [])])
        return self.model_copy(update={"env": {**self.env, "PYTHONPATH": path}})


def parse(text: str) -> Command:
    """Take a command line apart.

    Raises:
        UserError: It is empty or its quotes do not close.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"The command '{text}' cannot be read: {error}.", "Check its quotes.") from error
    env: dict[str, str] = {}
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        env[match[1]] = match[2]
        words.pop(0)
    if not words:
        raise UserError("An entry command is empty.", 'Write it like --entry "python train.py".')
    if _SHELL.search(_outside_quotes(text)):
        return Command(text=text, argv=["bash", "-c", text])
    if _PYTHON.fullmatch(words[0]):
        words[0] = "python"
    return Command(text=text, argv=words, env=env)


def _outside_quotes(text: str) -> str:
    return re.sub(r"'[^']*'|\\.", "", re.sub(r'"(?:[^"\\$`]|\\.)*"', "", text))


def named_files(command: Command, root: Path) -> list[str]:
    """Files of the tree that a command names: scripts, modules behind `-m`, configuration files.

    Shell scripts among them are read for the Python files that they start.

    Args:
        command: The command, to be run with `root` as its folder.
        root: The tree.
    """
    words = _shell_words(command.argv[2]) if command.is_shell else command.argv
    found = _files_of(words, root)
    for name in list(found):
        if name.endswith((".sh", ".bash", ".slurm", ".sbatch")):
            found += [n for n in _scripts_in(root / name, root) if n not in found]
    return found


def _files_of(words: list[str], root: Path) -> list[str]:
    found: list[str] = []
    for index, word in enumerate(words):
        candidates = [word, word.rpartition("=")[2]]
        if index and words[index - 1] == "-m":
            module = word.replace(".", "/")
            candidates = [f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py"]
        for name in candidates:
            path = root / name
            if name and not name.startswith(("/", "-")) and _is_inside(path, root) and name not in found:
                found.append(PurePosixPath(name).as_posix())
    return found


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(re.sub(r"[|&;<>()]", " ", text), comments=True)
    except ValueError:
        return text.split()


def _scripts_in(script: Path, root: Path) -> list[str]:
    text = script.read_text(errors="replace").replace("\\\n", " ")
    return [name for line in text.splitlines() for name in _files_of(_shell_words(line), root) if name.endswith(".py")]


def missing_script(command: Command, root: Path) -> str | None:
    """The script that a Python command starts, when the tree does not have it."""
    if command.is_shell or not (command.is_python or command.argv[0] in _LAUNCHERS):
        return None
    words = iter(command.argv[1:])
    for word in words:
        if word in ("-m", "-c"):
            return None
        if word.endswith(".py"):
            path = Path(word)
            return None if (path if path.is_absolute() else root / path).is_file() else word
        if word in _VALUED:
            next(words, None)
        elif command.is_python and not word.startswith("-"):
            return None if (root / word).exists() else word
    return None
