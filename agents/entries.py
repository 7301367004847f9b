"""Finds commands in a repository that exercise its PyTorch code, and says why it would take which."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from agents.reach import Reach
from agents.state import Entry
from tools.commands import Command, missing_script, named_files, parse
from tools.errors import UserError
from tools.project import Project
from tools.wording import amount

_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)^[ \t]*\1", re.MULTILINE | re.DOTALL)
_STARTS = re.compile(r"^(?:[A-Z_][A-Z0-9_]*=\S+\s+)*(?:python[\d.]*|torchrun|accelerate\s+launch|bash|sh)\s")
_PLACEHOLDER = re.compile(r"<[^>]+>|\[[^\]]*\]|/path/to|path/to/|\.\.\.|\$\{?\w|YOUR_|master_addr=\d")
_TRAINING_NAMES = ("train", "main", "run", "finetune", "pretrain")
_ASIDE = (
    "test", "setup", "bench", "eval", "sample", "generate", "prepare", "download", "plot", "demo", "docs", "convert",
)  # fmt: skip
MOST = 12


def from_texts(texts: list[str], origin: str, root: Path) -> list[Entry]:
    """Entries for commands that the user gave.

    Raises:
        UserError: A command cannot be read, or names a script that the tree does not have.
    """
    entries = []
    for text in texts:
        command = parse(text)
        missing = missing_script(command, root)
        if missing:
            raise UserError(
                f"'{text}': there is no {missing} in the committed files.",
                "Entry commands run in the folder that is migrated; commit the script if it is new.",
            )
        entries.append(Entry(command=text, origin=origin, why="given", scripts=named_files(command, root)))
    return entries


def discover(root: Path, reach: Reach, findings: set[str]) -> list[Entry]:
    """Commands found in the repository that reach torch, the most promising first.

    Args:
        root: The tree.
        reach: Import reach over the same tree.
        findings: Files with findings.
    """
    rated: dict[str, tuple[float, Entry]] = {}
    for order, (text, origin) in enumerate(_candidates(root)):
        entry, score = _rate(text, origin, root, reach, findings)
        if entry is not None and text not in rated:
            rated[text] = (score - order * 0.01, entry)
    ranked = sorted(rated.values(), key=lambda pair: -pair[0])
    return [entry for _, entry in ranked[:MOST]]


def _candidates(root: Path) -> Iterator[tuple[str, str]]:
    yield from _from_readmes(root)
    yield from _from_pyproject(root)
    for path in Project(root).paths:
        if path.endswith(".py") and path.count("/") <= 3 and _has_main(root / path):
            yield f"python {_quoted(path)}", path


def _from_readmes(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(root.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*")):
        if not path.is_file() or path.is_symlink():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for fence in _FENCE.finditer(text):
            first = text.count("\n", 0, fence.start(2)) + 1
            for offset, line in _logical_lines(fence[2]):
                yield line, f"{path.name}:{first + offset}"


def _logical_lines(block: str) -> Iterator[tuple[int, str]]:
    lines = block.splitlines()
    index = 0
    while index < len(lines):
        start, line = index, lines[index].strip()
        while line.endswith("\\") and index + 1 < len(lines):
            index += 1
            line = f"{line[:-1].rstrip()} {lines[index].strip()}"
        index += 1
        line = re.sub(r"\s+#.*$", "", re.sub(r"^[$>%]\s+", "", line))
        if _STARTS.match(line):
            yield start, line


def _from_pyproject(root: Path) -> Iterator[tuple[str, str]]:
    try:
        scripts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
        items = [(str(name), str(target)) for name, target in scripts.items()]
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        return
    for name, target in items:
        module, _, function = target.partition(":")
        if re.fullmatch(r"[\w.]+", module) and re.fullmatch(r"\w+", function):
            yield f"python -c 'from {module} import {function}; {function}()'", f"pyproject.toml, script {name}"


def _has_main(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    named = path.stem in _TRAINING_NAMES or path.stem.startswith(tuple(f"{n}_" for n in _TRAINING_NAMES))
    return named or (b"__main__" in data and b"__name__" in data)


def _quoted(path: str) -> str:
    return f"'{path}'" if re.search(r"[^\w./-]", path) else path


def _rate(text: str, origin: str, root: Path, reach: Reach, findings: set[str]) -> tuple[Entry | None, float]:
    try:
        command = parse(text)
    except UserError:
        return None, 0.0
    scripts = named_files(command, root) or _module_files(text, root)
    if missing_script(command, root) or not any(name.endswith(".py") for name in scripts):
        return None, 0.0
    files = reach.files(name for name in scripts if name.endswith(".py"))
    if "torch" not in reach.modules(files):
        return None, 0.0
    score, reasons = _score(text, command, scripts, files, root, reach, findings)
    why = "; ".join([f"reaches torch through {amount(len(files), 'file')}", *reasons])
    return Entry(command=text, origin=origin, why=why, scripts=scripts), score


def _module_files(text: str, root: Path) -> list[str]:
    match = re.search(r"from ([\w.]+) import", text)
    if match is None:
        return []
    module = match[1].replace(".", "/")
    names = [f"{base}{module}{end}" for base in ("", "src/") for end in (".py", "/__init__.py")]
    return [name for name in names if (root / name).is_file()]


def _score(
    text: str, command: Command, scripts: list[str], files: set[str], root: Path, reach: Reach, findings: set[str]
) -> tuple[float, list[str]]:
    reasons: list[str] = []
    score = 0.0
    script = next(name for name in scripts if name.endswith(".py"))
    touched = len(files & findings)
    if touched:
        score += 3 + min(touched, 5) * 0.2
        reasons.append(f"{touched} of them with findings")
    if any(_trains(root / name) for name in files):
        score += 3
        reasons.append("trains")
    stem = Path(script).stem.lower()
    score += 2 * stem.startswith(_TRAINING_NAMES) - 3 * any(word in script.lower() for word in _ASIDE)
    score -= 0.5 * script.count("/")
    if _PLACEHOLDER.search(text):
        score -= 6
        reasons.append("has placeholders")
    required = _required_arguments(reach.parse(root / script))
    lacking = [name for name in required if name not in text] if len(command.argv) <= 2 else []
    if lacking:
        score -= 5
        reasons.append(f"needs {', '.join(lacking)}")
    if re.search(r"device[= ]cpu|--no[-_](?:cuda|accel|gpu)", text):
        score -= 2
        reasons.append("chooses the CPU")
    if command.argv[0] in ("torchrun", "accelerate") or "torch.distributed" in text:
        score -= 1
    return score, reasons


def _trains(path: Path) -> bool:
    try:
        return b".backward(" in path.read_bytes()
    except OSError:
        return False


def _required_arguments(tree: ast.Module | None) -> list[str]:
    """Arguments without which argparse would refuse to start the script."""
    names: list[str] = []
    for node in ast.walk(tree) if tree else ():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "add_argument" or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        name = str(node.args[0].value)
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        required = options.get("required")
        positional = not name.startswith("-") and "default" not in options and "nargs" not in options
        if positional or (isinstance(required, ast.Constant) and required.value is True):
            names.append(name)
    return names
