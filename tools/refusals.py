"""What a proposed change may not do, whoever proposes it and whatever it says of itself.

A change is refused that touches tests, swallows errors, stubs code out, ends the program early or changes how the
project is judged. It is judged by what stands in the files before and after, not by what is said about it. What this
cannot see (a wrong formula, a narrower loop) is what running and comparing with the original are for.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tools.project import is_test

_JUDGES = frozenset(
    {
        "torchtpu.toml",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "noxfile.py",
        ".coveragerc",
        "sitecustomize.py",
        "usercustomize.py",
    }
)
_ABSENCE = frozenset({"ImportError", "ModuleNotFoundError"})
_EXITS = frozenset({"sys.exit", "os._exit", "exit", "quit", "os.abort", "os.kill"})
_WORK = ("backward", "step", "zero_grad", "all_reduce", "barrier")
_EMPTY = frozenset(
    {"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "rand", "randn"}
)
_MOCKS = re.compile(r"\bunittest\.mock\b|\bMagicMock\b|\bmonkeypatch\b")


def refuse(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> list[str]:
    """Why a change is refused; empty when it may be tried.

    Args:
        before: Text of each changed file, None for one that was not there.
        after: The same after the change, None for one that is gone.
    """
    reasons: list[str] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            reasons += _of_file(path, old, new)
    return list(dict.fromkeys(reasons))


def _of_file(path: str, old: str | None, new: str | None) -> Iterator[str]:
    if problem := bad_path(path):
        yield problem
    if is_test(path):
        yield f"{path} belongs to the tests, which stay as they are: a change must pass them"
    elif PurePosixPath(path).name in _JUDGES or _judging_table(old) != _judging_table(new):
        yield f"{path} says how the project is judged and stays as it is"
    if new is None:
        if old and old.strip():
            yield f"{path} would be deleted"
        return
    if path.endswith(".py"):
        yield from _of_python(path, old or "", new)


def bad_path(path: str) -> str | None:
    """Why a path leads out of the tree or into what is not code."""
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\0" in path or "\\" in path:
        return f"{path!r} is outside the tree"
    return f"{path} is git's own" if ".git" in pure.parts else None


def _judging_table(text: str | None) -> list[str]:
    """The part of a settings file that is about tests."""
    found: list[str] = []
    inside = False
    for line in (text or "").splitlines():
        if line.startswith("["):
            inside = "pytest" in line or "coverage" in line
        if inside and line.strip():
            found.append(line.strip())
    return found


def _of_python(path: str, old: str, new: str) -> Iterator[str]:
    try:
        after = ast.parse(new)
    except (SyntaxError, ValueError) as error:
        yield f"{path} would not parse: {error}"
        return
    try:
        before = ast.parse(old)
    except (SyntaxError, ValueError):
        before = ast.Module(body=[], type_ignores=[])
    yield from (f"{path}: {reason}" for reason in _compared(before, after))
    if _MOCKS.search(new) and not _MOCKS.search(old):
        yield f"{path}: it brings in a mock"
    if old and _only_deletes_checks(old, new):
        yield f"{path}: it only deletes checks"


def _compared(before: ast.Module, after: ast.Module) -> Iterator[str]:
    counted = ((kind, Counter(found(before)), Counter(found(after))) for kind, found in _COUNTED.items())
    for said, old, new in counted:
        if more := new - old:
            yield f"{said} ({', '.join(sorted(more))})"
    lost = Counter(_work(before)) - Counter(_work(after))
    if lost:
        yield f"it leaves out work: {', '.join(sorted(f'{name}()' for name in lost))}"
    old_bodies, new_bodies = dict(_bodies(before)), dict(_bodies(after))
    for name, node in new_bodies.items():
        was = old_bodies.get(name)
        if was is not None and _is_stub(node) and not _is_stub(was):
            yield f"{name} would be a stub"
    gone = [name for name in old_bodies if name not in new_bodies and not _is_stub(old_bodies[name])]
    if gone and len(new_bodies) < len(old_bodies):
        yield f"it takes out {', '.join(sorted(gone)[:3])}"


def _swallowing(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            names = set(_names(node.type))
            if not (names and names <= _ABSENCE) and not any(isinstance(n, ast.Raise) for n in ast.walk(node)):
                yield f"except {', '.join(sorted(names)) or 'anything'}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("contextlib.suppress", "suppress"):
            yield "suppress"


def _names(node: ast.expr | None) -> Iterator[str]:
    if isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _names(part)
    elif node is not None:
        yield ast.unparse(node).rpartition(".")[2]


def _silencing(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            text = ast.unparse(node)
            if re.match(r"(?:warnings\.)?(?:filterwarnings|simplefilter)\(['\"]ignore", text):
                yield "warnings are ignored"
            elif re.search(r"\.skip\(|\.skipif\(|\.xfail\(", text):
                yield "a skip"


def _exits(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in _EXITS:
            yield name
        elif isinstance(node, ast.Raise) and node.exc is not None and "SystemExit" in ast.unparse(node.exc):
            yield "SystemExit"


def _never(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            yield "if False"


_COUNTED = {
    "it catches an error and goes on": _swallowing,
    "it hides warnings or tests": _silencing,
    "it ends the program": _exits,
    "it switches code off": _never,
}


def _work(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WORK:
            yield node.func.attr


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _bodies(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, _Function | ast.ClassDef):
            yield from _bodies(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _bodies(node, prefix)


def _is_stub(node: _Function) -> bool:
    """Whether a function computes nothing: a constant, its own argument, or a tensor of one value."""
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    body = [s for s in body if not isinstance(s, ast.Pass)]
    if not body:
        return True
    first = body[0]
    if isinstance(first, ast.Raise):
        return "NotImplementedError" in ast.unparse(first)
    if not isinstance(first, ast.Return):
        return False
    value = first.value
    arguments = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    if value is None or isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name):
        return value.id in arguments
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _EMPTY


def _only_deletes_checks(old: str, new: str) -> bool:
    before, after = Counter(map(str.strip, old.splitlines())), Counter(map(str.strip, new.splitlines()))
    added, removed = after - before, before - after
    real = [line for line in added if line and not line.startswith("#") and line != "pass"]
    return not real and any(line.startswith(("assert ", "raise ")) for line in removed)
