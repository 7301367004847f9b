"""Which files of a repository a script reaches by importing, found without running anything."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

_LARGEST = 2_000_000
_CONFIGS = (".yaml", ".yml", ".json", ".jsonc", ".toml", ".ini", ".cfg")
_CONFIG_FOLDERS = ("config_path", "config_dir")


class Reach:
    """Follows imports inside one tree.

    Besides `import` statements it follows string constants that name a Python file or module of the
    tree, since `exec(open("configurator.py").read())` and `import_module("models.gpt")` reach code too.
    It does not see names computed at run time.

    Args:
        root: The tree; nothing outside it is followed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._parsed: dict[Path, ast.Module | None] = {}

    def files(self, scripts: Iterable[str]) -> set[str]:
        """All Python files that the scripts reach, the scripts included, relative to the root."""
        reached: set[Path] = set()
        for script in scripts:
            start = self._root / script
            pending = [start]
            while pending:
                path = pending.pop()
                if path in reached or not path.is_file():
                    continue
                reached.add(path)
                pending.extend(self._targets(path, start.parent))
        return {path.relative_to(self._root).as_posix() for path in reached}

    def settings(self, files: Iterable[str], words: Iterable[str] = ()) -> set[str]:
        """Configuration files that the files, or the words of a command line, name; all where hydra reads a folder."""
        named, folders = {word.rpartition("=")[2] for word in words}, set[str]()
        for file in files:
            tree = self.parse(self._root / file)
            for node in ast.walk(tree) if tree else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named.add(node.value)
                elif isinstance(node, ast.keyword) and node.arg in _CONFIG_FOLDERS:
                    folders.add(Path(ast.unparse(node.value).strip("'\"")).name)
        names = {Path(name).name for name in named if name.endswith(_CONFIGS)}
        found = {path for path in self._root.rglob("*") if path.suffix in _CONFIGS and path.is_file()}
        paths = (path.relative_to(self._root) for path in found)
        return {p.as_posix() for p in paths if p.name in names or folders.intersection(p.parts[:-1])}

    def modules(self, files: Iterable[str]) -> set[str]:
        """Top-level names of all modules that the files import."""
        names: set[str] = set()
        for file in files:
            tree = self.parse(self._root / file)
            for node in ast.walk(tree) if tree else ():
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.add(node.module.split(".")[0])
        return names

    def parse(self, path: Path) -> ast.Module | None:
        """The syntax tree of a file, or None where it has none."""
        if path not in self._parsed:
            self._parsed[path] = _parse(path)
        return self._parsed[path]

    def _targets(self, path: Path, home: Path) -> Iterator[Path]:
        tree = self.parse(path)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(alias.name, self._bases(home))
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node, path, home)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._named(node.value, home)

    def _from(self, node: ast.ImportFrom, path: Path, home: Path) -> Iterator[Path]:
        bases = self._bases(home)
        if node.level:
            package = path.parent
            for _ in range(node.level - 1):
                package = package.parent
            bases = [package]
        module = node.module or ""
        if node.level and not module:
            yield from self._inside(bases[0] / "__init__.py")
        yield from self._module(module, bases)
        for alias in node.names:
            yield from self._module(f"{module}.{alias.name}".lstrip("."), bases)

    def _named(self, text: str, home: Path) -> Iterator[Path]:
        if not 3 < len(text) < 200 or any(c in text for c in " \n\0"):
            return
        if text.endswith(".py"):
            for base in (home, self._root):
                yield from self._inside(base / text)
        elif text.replace(".", "").isidentifier() and "." in text:
            yield from self._module(text, self._bases(home))

    def _bases(self, home: Path) -> list[Path]:
        return [home, self._root, self._root / "src"]

    def _module(self, name: str, bases: list[Path]) -> Iterator[Path]:
        parts = [part for part in name.split(".") if part]
        for base in bases:
            found = [base.joinpath(*parts[: count + 1]) for count in range(len(parts))]
            if not found or not (found[0].is_dir() or found[0].with_suffix(".py").is_file()):
                continue
            for step in found:
                yield from self._inside(step / "__init__.py")
                yield from self._inside(step.parent / f"{step.name}.py")
            return

    def _inside(self, path: Path) -> Iterator[Path]:
        if path.is_file() and (real := path.resolve()).is_relative_to(self._root):
            yield real


def _parse(path: Path) -> ast.Module | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the repository's own escapes such as "\d"
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
