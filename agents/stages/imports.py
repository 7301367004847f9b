"""Imports changed modules in a supervised child, so that a module that only parses is found out."""

from __future__ import annotations

import ast
import json
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from agents import import_paths, workspace
from agents.context import Context
from agents.reach import Reach
from agents.stages.clean import reached
from agents.state import State
from tools import run as runner
from tools.commands import Command

_CHILD = """
import importlib, json, sys
seen = {}
for file, base, name in json.loads(sys.argv[1]):
    if base not in sys.path:
        sys.path.insert(0, base)
    try:
        importlib.import_module(name)
        seen[file] = None
    except ModuleNotFoundError as error:
        seen[file] = ["missing", error.name or str(error)]
    except BaseException as error:  # a module may raise anything, SystemExit too, and each means that it is broken
        seen[file] = ["broken", f"{type(error).__name__}: {error}"]
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
    """What is known of the changed modules that an entry reaches.

    Attributes:
        note: In words.
        whole: Whether each of them is known to import.
        broken: Those that do not, with the reason.
        missing: Packages that are not installed, which some of them need.
        evidence: Logs.
    """

    note: str
    whole: bool
    broken: list[str] = []
    missing: list[str] = []
    evidence: list[str] = []


def import_changed(state: State, context: Context, changed: list[str]) -> Imports:
    """Import the changed modules that an entry reaches, unless a run that ended well has done so.

    A module that does more than define things is not imported here, since that would run it.
    """
    root = context.root(state)
    scope = f"{state.origin.scope}/" if state.origin.scope else ""
    python = [name for name in changed if name.endswith(".py")]
    modules = {name.removeprefix(scope) for name in python if name.startswith(scope)} & reached(state, context)
    aside = len(python) - len(modules)
    loaded = {name for record in state.latest if record.ended_well for name in record.loaded} & modules
    if modules == loaded:
        return Imports(note=_said(len(loaded), len(modules), aside), whole=bool(modules) or not aside)
    if state.request.dry_run:
        return Imports(note="not imported in a dry run", whole=False)
    reach = Reach(root)
    defining = sorted(name for name in modules - loaded if only_defines(reach.parse(root / name)))
    if defining and not context.folder.work.exists():
        workspace.build(context.folder.tree, None, context.folder.work, links=False, left_out=set())
    seen = _import(defining, state, context) if defining else _Seen()
    return _judge(seen, modules, loaded, aside)


def _said(good: int, total: int, aside: int) -> str:
    parts = [f"known to import: {good} of {total} that an entry reaches"] if total else []
    parts += [f"parsed only, since no entry reaches them: {aside}"] if aside else []
    return "; ".join(parts or ["no module is among them"])


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


class _Seen(BaseModel):
    """What the child said: for each file None, or what kind of problem and which."""

    files: dict[str, list[str] | None] = {}
    stopped: str = ""
    died: bool = False
    log: list[str] = []


def _import(modules: list[str], state: State, context: Context) -> _Seen:
    where = context.folder.work / state.origin.scope
    answer = context.folder.work / ".torchtpu-imports.json"
    asked = json.dumps([(name, *_module(name, where)) for name in modules])
    command = Command(text="import", argv=["python", "-c", _CHILD, asked, str(answer)])
    request = runner.RunRequest(
        command=command.importing(import_paths.within(context.folder.work, state.import_paths)),
        cwd=where,
        device="cpu",
        python=Path(state.request.python) if state.request.python else None,
        timeout=_SECONDS,
        sandbox=state.request.sandbox,
        writable=[context.folder.work],
        log=context.folder.path / "imports.log",
    )
    output = runner.run(request)
    log = [str(request.log)]
    try:
        files: dict[str, list[str] | None] = json.loads(answer.read_text())
    except (OSError, ValueError):
        # A module that takes the process with it is broken; one that outlasts a limit is only not known to import.
        return _Seen(stopped=output.explanation, died=output.outcome == "abort", log=log)
    answer.unlink()
    return _Seen(files=files, log=log)


def _module(name: str, root: Path) -> tuple[str, str]:
    """Folder to put on the path, and dotted name, of a file."""
    path = root / name
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists() and folder != root.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(parts) or PurePosixPath(name).stem


def _judge(seen: _Seen, modules: set[str], loaded: set[str], aside: int) -> Imports:
    good = loaded | {name for name, problem in seen.files.items() if problem is None}
    broken = [f"import {name}: {p[1]}" for name, p in seen.files.items() if p and p[0] == "broken"]
    if seen.died:
        broken.append(f"import {' or '.join(sorted(modules - loaded))}: {seen.stopped}")
    missing = sorted({p[1] for p in seen.files.values() if p and p[0] == "missing"})
    notes = [_said(len(good), len(modules), aside)]
    if missing:
        notes.append(f"not installed: {', '.join(missing)}")
    if seen.stopped:
        notes.append(f"the import was ended: {seen.stopped}")
    unasked = sorted(modules - loaded - set(seen.files)) if not seen.stopped else []
    if unasked:
        notes.append(f"importing {', '.join(unasked[:3])}{', ...' if unasked[3:] else ''} would run it, and no run did")
    return Imports(note="; ".join(notes), whole=good == modules, broken=broken, missing=missing, evidence=seen.log)
