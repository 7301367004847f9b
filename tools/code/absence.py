"""Code that is reached only where an API of PyTorch, or a newer release of it, is absent."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.module import Module, around, fact, string

_ABSENCE = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError", "NameError"})
_BROAD = frozenset({"Exception", "BaseException"})
_DEVICES = frozenset("cuda mps xpu npu hpu mlu musa mtia tpu xla hip".split())
"""Attributes of torch whose presence says what a machine has, not how old PyTorch is."""

_TORCH_VERSION = re.compile(r"(?i)torch\w*[._]*version|\b__version__\b.*torch|torch\b.*\bversion|version\b.*\btorch\b")
_NOT_OURS = re.compile(r"version\.(cuda|hip)|torch_?(vision|audio|text|_?npu|_?tpu|_?xla)")
_NAMED = re.compile(
    r"(?i)torch_?v?\d|(^|_)pt_?\d|torch.*(greater|less|older|newer|lower|_ge_|_gt_|_lt_|_le_|_ge$|_lt$|after|at_least)"
)
_OLDER = re.compile(r"(?i)(^|_)(less|lt|le|lower|older|before|smaller|below)(_|$|\d)")


@around
def stands_in(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    """Whether a node runs only where an API of PyTorch is absent: it is right for the releases it is there for.

    Such code stands under version tests, ``hasattr`` and ``getattr`` tests, flags that are named or assigned so, after
    a return under the opposite test, and in handlers of the errors that a missing name or parameter raises.
    """
    if _chosen_by_absence(module, parent, child) or _after_presence(module, parent, child):
        return True
    return isinstance(parent, ast.ExceptHandler) and _handles_absence(module, parent)


def implies_absence(module: Module, test: ast.expr, outcome: bool) -> bool:
    """Whether a test that comes out as ``outcome`` says that something of PyTorch is missing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return implies_absence(module, test.operand, not outcome)
    if isinstance(test, ast.BoolOp):
        results = [implies_absence(module, value, outcome) for value in test.values]
        if isinstance(test.op, ast.And) and not outcome and any(results):
            # `hasattr(torch, "accelerator") and torch.accelerator.is_available()` is one question in two parts.
            rest = (v for v, absent in zip(test.values, results, strict=True) if not absent)
            return all("torch.accelerator." in module.text(value) for value in rest)
        return any(results) if isinstance(test.op, ast.And) == outcome else all(results)
    presence = _asks_presence(module, test)
    return presence is not None and presence != outcome


def _chosen_by_absence(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(parent, ast.If):
        if child in parent.body:
            return implies_absence(module, parent.test, True)
        return child in parent.orelse and implies_absence(module, parent.test, False)
    if isinstance(parent, ast.IfExp) and child is not parent.test:
        return implies_absence(module, parent.test, child is parent.body)
    if isinstance(parent, ast.BoolOp) and child in parent.values:
        before = parent.values[: parent.values.index(child)]
        return any(implies_absence(module, value, isinstance(parent.op, ast.And)) for value in before)
    return False


def _after_presence(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            first = _first_exit(module, block)
            return first is not None and first < block.index(child)
    return False


def _first_exit(module: Module, block: list[ast.stmt]) -> int | None:
    """Place in a block of the first statement that leaves it where the API is there; found once a block."""
    key = (_first_exit, id(block))
    if key not in module.facts:
        leaving = (
            index
            for index, s in enumerate(block)
            if isinstance(s, ast.If)
            and not s.orelse
            and isinstance(s.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            and implies_absence(module, s.test, False)
        )
        module.facts[key] = next(leaving, None)
    return module.facts[key]  # type: ignore[return-value]


def _asks_presence(module: Module, test: ast.expr) -> bool | None:
    """True for a test that holds where something is there, False where it is not, None for any other test."""
    if isinstance(test, ast.Call):
        return _called(module, test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(module, test)
    if isinstance(test, ast.Name | ast.Attribute):
        name = test.id if isinstance(test, ast.Name) else test.attr
        if isinstance(test, ast.Name) and name in _flags(module):
            return _flags(module)[name]
        if _NAMED.search(name):
            return not _OLDER.search(name)
    return None


def _called(module: Module, call: ast.Call) -> bool | None:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in ("hasattr", "getattr") and len(call.args) >= 2:
        attribute = string(call.args[1])
        asked = (module.qualify(call.args[0]) or "").partition(".")[0] == "torch"
        return True if asked and attribute is not None and attribute not in _DEVICES else None
    if name == "callable" and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
        return _called(module, call.args[0])
    text = module.text(call)
    if name == "startswith" and _TORCH_VERSION.search(text) and not _NOT_OURS.search(text):
        return False
    given = " ".join(module.text(a) for a in call.args)
    about = _NAMED.search(name) or re.search(r"(?i)torch.*version|version.*torch", f"{name} {given}")
    if about and not _NOT_OURS.search(text) and re.search(r"\d", text) and _is_question(name):
        return not (_OLDER.search(name) or "<" in given or re.search(r"\b(lt|le)\b", given))
    return None


def _is_question(name: str) -> bool:
    return bool(re.search(r"(?i)version|after|least|greater|less|compare|require|check|is_|_ge|_lt|cache", name))


def _compared(module: Module, test: ast.Compare) -> bool | None:
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None:
        found = _asks_presence(module, left) if isinstance(left, ast.Call) else None
        return found if found is None or isinstance(operator, ast.IsNot) else not found
    text = module.text(test)
    ours = [bool(_TORCH_VERSION.search(module.text(side))) for side in (left, right)]
    if not any(ours) or _NOT_OURS.search(text) or not re.search(r"\d|(?i:ver)", text):
        return None
    if isinstance(operator, ast.Eq | ast.In):
        return False
    newer = isinstance(operator, ast.Gt | ast.GtE) if ours[0] else isinstance(operator, ast.Lt | ast.LtE)
    return newer if isinstance(operator, ast.Gt | ast.GtE | ast.Lt | ast.LtE) else None


@fact
def _flags(module: Module) -> dict[str, bool]:
    """Module-level variables that hold such a test, or that a ``try`` sets by whether an import or a name works."""
    found: dict[str, bool] = {}
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            if isinstance(statement.value, ast.Call | ast.Compare | ast.UnaryOp):
                value = statement.value
                negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
                asked = _asked_directly(module, value.operand if isinstance(value, ast.UnaryOp) else value)
                if asked is not None:
                    found[target.id] = asked != negated
        elif isinstance(statement, ast.Try) and any(_handles(module, statement, h) for h in statement.handlers):
            found.update(dict(_constants(statement.body)))
    return found


def _asked_directly(module: Module, value: ast.expr) -> bool | None:
    if isinstance(value, ast.Call):
        return _called(module, value)
    return _compared(module, value) if isinstance(value, ast.Compare) and len(value.ops) == 1 else None


def _constants(block: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    for statement in block:
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, bool):
                yield target.id, statement.value.value


def _handles_absence(module: Module, handler: ast.ExceptHandler) -> bool:
    parent = module.parent(handler)
    return isinstance(parent, ast.Try) and _handles(module, parent, handler)


def _handles(module: Module, statement: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for what the ``try`` block needs of PyTorch and an older release lacks."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {k.id for k in kinds if isinstance(k, ast.Name)}
    imports = [s for s in statement.body if isinstance(s, ast.Import | ast.ImportFrom)]
    from_torch = any(_is_of_torch(s) for s in imports)
    if None in kinds or names & _BROAD:
        return from_torch and len(imports) == len(statement.body)
    if not names & _ABSENCE:
        return False
    return from_torch or (not names <= {"ImportError", "ModuleNotFoundError"} and _uses_torch(module, statement.body))


def _is_of_torch(statement: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").partition(".")[0] == "torch" and not statement.level
    return any(alias.name.startswith("torch.") for alias in statement.names)


def _uses_torch(module: Module, block: list[ast.stmt]) -> bool:
    nodes = (n for s in block for n in ast.walk(s) if isinstance(n, ast.Attribute | ast.Name))
    return any((module.names.qualify(n) or "").startswith("torch.") for n in nodes)
