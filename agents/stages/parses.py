"""Stage `parses`: every changed file parses, and the changed modules that the entries reach import."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

from agents.context import Context
from agents.stages.common import failed, not_run, passed
from agents.stages.imports import import_changed
from agents.state import Owner, State, Verdict
from tools.wording import amount


def parses(state: State, context: Context) -> Verdict:
    """Parse what was changed by the parser of its kind, then import it in a child process."""
    tree = context.folder.tree
    changed = sorted({name for commit in state.commits for name in commit.files})
    evidence = [f"git -C {tree} diff --stat {state.origin.base} {state.branch}"]
    if not changed:
        return passed("parses", "no file was changed", evidence)
    wrong = [f"{name}: {problem}" for name in changed if (problem := parse_problem(tree / name))]
    if wrong:
        return failed("parses", "; ".join(wrong[:5]), evidence)
    imports = import_changed(state, context, changed)
    evidence += imports.evidence
    if imports.broken:
        return failed("parses", "; ".join(imports.broken[:5]), evidence, Owner.CODE)
    said = f"{amount(len(changed), 'changed file')} parse{'s' if len(changed) == 1 else ''}; {imports.note}"
    if not imports.whole:
        return not_run("parses", said, evidence, Owner.ENVIRONMENT if imports.missing else None)
    return passed("parses", said, evidence)


def parse_problem(path: Path) -> str | None:
    """Why a file does not parse; None when it does, or when its kind has no parser."""
    parser = _PARSERS.get(path.suffix.lower())
    if parser is None:
        return None
    try:
        parser(path.read_bytes())
    except Exception as error:  # noqa: BLE001 - each parser has its own errors, and each means the same here
        return str(error).splitlines()[0]
    return None


def _python(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the repository's own escapes such as "\d"
        compile(ast.parse(data), "<file>", "exec", dont_inherit=True)


def _notebook(data: bytes) -> None:
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cells without an id, which the notebook had before
        nbformat.validate(nbformat.reads(data.decode("utf-8"), as_version=nbformat.NO_CONVERT))  # type: ignore[no-untyped-call]


def _yaml(data: bytes) -> None:
    from ruamel.yaml import YAML

    list(YAML(typ="safe", pure=True).compose_all(data.decode("utf-8")))


_PARSERS: dict[str, Callable[[bytes], object]] = {
    ".py": _python,
    ".pyi": _python,
    ".ipynb": _notebook,
    ".json": json.loads,
    ".toml": lambda data: tomllib.loads(data.decode("utf-8")),
    ".yaml": _yaml,
    ".yml": _yaml,
}
