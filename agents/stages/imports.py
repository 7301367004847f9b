"""Imports changed modules in a supervised child, so that a module that only parses is found out."""

from __future__ import annotations

import ast
import json
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from agents import workspace
from agents.context import Context
from agents.reach import Reach
from agents.stages.clean import reached
from agents.state import State
from tools import run as runner
from tools.commands import Command

_CHILD = """
import importlib, json, sys
seen = {}
for base, name in json.loads(sys.argv[1]):
    if base not in sys.path:
        sys.path.insert(0, base)
    try:
        importlib.import_module(name)
        seen[name] = None
    except ModuleNotFoundError as error:
        seen[name] = ["missing", error.name or str(error)]
    except BaseException as error:
        seen[name] = ["broken", f"{type(error).__name__}: {error}"]
with open(sys.argv[2], "w") as file:
    json.dump(seen, file)
"""
_SECONDS = 180.0
# Those of `torch.accelerator` are what the rules themselves write at the top of a module.
_CHEAP_CALLS = {
    "getLogger", "TypeVar", "namedtuple", "compile", "device", "get", "join", "set",
    "current_accelerator", "is_available", "device_count", "bool",
}  # fmt: skip


class Imports(BaseModel):
    """What importing came to."""

    note: str
    broken: list[str] = []
    evidence: list[str] = []


def import_changed(state: State, context: Context, changed: list[str]) -> Imports:
    """Import the changed modules that an entry reaches and that do nothing but define things."""
    if state.request.dry_run:
        return Imports(note="not imported in a dry run")
    root = context.root(state)
    scope = f"{state.origin.scope}/" if state.origin.scope else ""
    names = [name.removeprefix(scope) for name in changed if name.endswith(".py") and name.startswith(scope)]
    on_path = reached(state, context)
    reach = Reach(root)
    modules = [name for name in names if name in on_path and only_defines(reach.parse(root / name))]
    if not modules:
        return Imports(note="none of them can be imported without running it")
    if not context.folder.work.exists():
        workspace.build(context.folder.tree, None, context.folder.work, links=False, left_out=set())
    return _import(modules, state, context)


def only_defines(tree: ast.Module | None) -> bool:
    """Whether importing a module runs nothing but imports, definitions and plain assignments."""
    return tree is not None and all(_is_definition(statement) for statement in tree.body)


def _is_definition(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If | ast.Try):
        body = [*statement.body, *statement.orelse]
        body += [s for h in statement.handlers for s in h.body] if isinstance(statement, ast.Try) else []
        return _is_main_guard(statement) or all(_is_definition(inner) for inner in body)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not any(isinstance(node, ast.Call) and not _is_cheap(node) for node in ast.walk(statement))
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)
    return isinstance(statement, kinds)


def _is_cheap(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _CHEAP_CALLS


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _import(modules: list[str], state: State, context: Context) -> Imports:
    where = context.folder.work / state.origin.scope
    answer = context.folder.work / ".torchtpu-imports.json"
    pairs = [_module(name, where) for name in modules]
    names = [name for _, name in pairs]
    request = runner.RunRequest(
        command=Command(text="import", argv=["python", "-c", _CHILD, json.dumps(pairs), str(answer)]),
        cwd=where,
        device="cpu",
        python=Path(state.request.python) if state.request.python else None,
        timeout=_SECONDS,
        sandbox=state.request.sandbox,
        writable=[context.folder.work],
        log=context.folder.path / "imports.log",
    )
    output = runner.run(request)
    try:
        seen: dict[str, list[str] | None] = json.loads(answer.read_text())
    except (OSError, ValueError):
        # A module that takes the process with it is broken; one that outlasts a limit is only not known to import.
        died = [f"import {' or '.join(names)}: {output.explanation}"] if output.outcome == "abort" else []
        return Imports(note=f"not imported: {output.explanation}", broken=died, evidence=[str(request.log)])
    answer.unlink()
    return _judge(seen, [str(request.log)])


def _module(name: str, root: Path) -> tuple[str, str]:
    """Folder to put on the path, and dotted name, of a file."""
    path = root / name
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists() and folder != root.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(parts) or PurePosixPath(name).stem


def _judge(seen: dict[str, list[str] | None], evidence: list[str]) -> Imports:
    good = [name for name, problem in seen.items() if problem is None]
    missing = sorted({problem[1] for problem in seen.values() if problem and problem[0] == "missing"})
    broken = [f"import {name}: {p[1]}" for name, p in seen.items() if p and p[0] == "broken"]
    note = f"{len(good)} of {len(seen)} changed modules import"
    if missing:
        note += f" (not installed: {', '.join(missing)})"
    return Imports(note=note, broken=broken, evidence=evidence)
