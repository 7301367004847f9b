"""Whether the names that a fix writes are bound where its text will be evaluated."""

from __future__ import annotations

import ast
import re

from tools.code.edits import Edit, Fix
from tools.code.module import FUNCTIONS, Function, Module, fact, is_for_checkers, parameters
from tools.code.names import imported

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")
_IMPORT = re.compile(r"^import (\w+)", re.MULTILINE)
_CONSTANT = re.compile(r"^([A-Z_]+) = ", re.MULTILINE)


def binds(module: Module, fix: Fix) -> bool:
    """Whether every name of torch in a fix's text stands for torch at that place.

    What runs when the file is imported (module and class bodies, defaults, decorators) needs an import before it that
    runs in any case; what runs later needs one that holds for the function.
    """
    known = _roots(module)
    brought = {name: edit.start for edit in fix.edits for name in _IMPORT.findall(edit.replacement)}
    constants = {name: edit.start for edit in fix.edits for name in _CONSTANT.findall(edit.replacement)}
    for edit in fix.edits:
        early = {name for name, start in constants.items() if edit.start < start}
        if early & set(_NAME.findall(edit.replacement)) and not _functions_around(module, edit):
            return False
        for name in set(_NAME.findall(_IMPORT.sub("", edit.replacement))) & (known.keys() | brought.keys()):
            if brought.get(name, edit.start + 1) > edit.start and not _bound(module, name, edit):
                return False
    return True


def _bound(module: Module, name: str, edit: Edit) -> bool:
    around = _functions_around(module, edit)
    for function in around:
        if name in parameters(function):
            return False
        own = [
            s for s in _roots(module).get(name, ()) if next(h for h in module.ancestors(s) if _is_scope(h)) is function
        ]
        if own:  # the name is the function's own, in the whole of it
            return function is not around[0] or any(module.span(s)[1] <= edit.start for s in own)
    statements = [s for s in _roots(module).get(name, ()) if not _inside(module, s, edit if not around else None)]
    if around:
        starts = [h for s in statements for h in module.ancestors(s) if _is_start(h)]
        return bool(statements) and all(_holds(h, edit, module) for h in starts)
    before = [s for s in statements if module.span(s)[1] <= edit.start]
    return any(_certain(module, s, edit) for s in before) and not _unset(module, name, edit)


@fact
def _roots(module: Module) -> dict[str, list[ast.Import | ast.ImportFrom]]:
    """The imports of torch and of its parts that run, by the name they bind."""
    found: dict[str, list[ast.Import | ast.ImportFrom]] = {}
    statements: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
    for statement in statements:
        if any(is_for_checkers(holder) for holder in module.ancestors(statement)):
            continue
        for name, value in imported(statement).items():
            if value.partition(".")[0] == "torch":
                found.setdefault(name, []).append(statement)
    return found


def _functions_around(module: Module, edit: Edit) -> list[Function]:
    """The functions whose bodies hold an edit, so that its text is evaluated when they are called; innermost first."""
    return [function for start, end, function in _bodies(module) if start <= edit.start and edit.end <= end]


@fact
def _bodies(module: Module) -> list[tuple[int, int, Function]]:
    """Where the bodies of functions start and end, later functions first."""
    functions: list[Function] = [f for kind in FUNCTIONS for f in module.nodes(kind)]
    found = []
    for function in sorted(functions, key=module.span, reverse=True):
        first = function.body[0] if isinstance(function.body, list) else function.body
        found.append((module.span(first)[0], module.span(function)[1], function))
    return found


def _is_scope(holder: ast.AST) -> bool:
    return isinstance(holder, (*FUNCTIONS, ast.ClassDef, ast.Module))


def _inside(module: Module, statement: ast.stmt, edit: Edit | None) -> bool:
    """Whether a statement binds nothing for the module, nor, in a class body, for an edit in that."""
    holders = [h for h in module.ancestors(statement) if isinstance(h, (*FUNCTIONS, ast.ClassDef))]
    return any(isinstance(h, FUNCTIONS) or edit is None or not _holds(h, edit, module) for h in holders)


def _is_start(holder: ast.AST) -> bool:
    """Whether it is ``if __name__ == "__main__":``."""
    names = ast.walk(holder.test) if isinstance(holder, ast.If) else ()
    return any(isinstance(name, ast.Name) and name.id == "__name__" for name in names)


def _holds(holder: ast.AST, edit: Edit, module: Module) -> bool:
    start, end = module.span(holder)
    return start <= edit.start <= end


def _certain(module: Module, statement: ast.stmt, edit: Edit) -> bool:
    """Whether an import has run wherever the edit's text is evaluated after it, in straight order."""
    for holder in module.ancestors(statement):
        if isinstance(holder, ast.If | ast.For | ast.While) and not _holds(holder, edit, module):
            return bool(isinstance(holder, ast.If) and isinstance(holder.test, ast.Constant) and holder.test.value)
        if isinstance(holder, ast.Try) and not _holds(holder, edit, module):
            if any(not _leaves(handler) for handler in holder.handlers):
                return False
    return True


def _leaves(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    text = ast.unparse(last)
    return isinstance(last, ast.Raise) or "exit(" in text or "import torch" in text


def _unset(module: Module, name: str, edit: Edit) -> bool:
    """Whether the module itself puts something else under the name, such as None until somebody asks for it."""
    key = (_unset, name)
    if key not in module.facts:
        text = module.source.text
        assigned = re.compile(rf"({name})\s*(:[^=\n]+)?=(?!=)")
        first = assigned.match(text) or re.compile(rf"\n{assigned.pattern}").search(text)
        module.facts[key] = first.start(1) if first else len(text)
    return module.facts[key] < edit.start  # type: ignore[operator]
