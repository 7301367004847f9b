"""Where a file uses ``torch.cuda``, and how far an expression built on such a use reaches."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from tools.code.attempts import decides_by_failure
from tools.code.cuda_api import canonical
from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.literals import DEVICE_WORD
from tools.code.module import Module, fact
from tools.code.rewrite import (
    AVAILABLE,
    CUDA_AVAILABLE,
    accelerator_test,
    alone,
    choose_by_test,
    cuda_test,
    guard,
    import_edits,
    parenthesised,
    resolved_variables,
    spell,
)

Use = tuple[ast.expr, str]


def uses(module: Module, names: Collection[str]) -> Iterator[Use]:
    """Visited references to the given names of ``torch.cuda`` off the CUDA-only path, as (node, name).

    Those whose failure the program waits for are left to it.
    """
    for node, name in every_use(module):
        if name in names and not on_cuda_path(module, node) and not decides_by_failure(module, node):
            yield node, name


def calls(module: Module, names: Collection[str]) -> Iterator[tuple[ast.Call, str]]:
    """Visited calls of the given names of ``torch.cuda`` off the CUDA-only path, as (call, name)."""
    for node, name in uses(module, names):
        call = module.parent(node)
        if isinstance(call, ast.Call) and call.func is node:
            yield call, name


@fact
def every_use(module: Module) -> tuple[Use, ...]:
    """All visited references to decided names of ``torch.cuda``, wherever they run, in source order."""
    return tuple(sorted(_find(module), key=lambda use: module.span(use[0])))


def _find(module: Module) -> Iterator[Use]:
    for node in module.nodes(ast.Attribute, ast.Name, ast.Call):
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            continue
        dotted = module.names.qualify(node)
        name = canonical(dotted) if dotted else None
        if name and module.qualify(node) == dotted and editable(module, node):
            yield node, name


def editable(module: Module, node: ast.expr) -> bool:
    """Whether the parser's position for a node can be trusted: inside f-strings it sometimes cannot (Python 3.11)."""
    if not any(isinstance(a, ast.JoinedStr) for a in module.ancestors(node)):
        return True
    try:
        return ast.dump(ast.parse(module.text(node), mode="eval").body) == ast.dump(node)
    except (SyntaxError, ValueError, IndexError):
        return False


def chain(module: Module, node: ast.expr) -> ast.expr:
    """The whole of ``torch.cuda.current_stream().wait_stream(s)`` for its first part."""
    current = node
    while True:
        parent = module.parent(current)
        if not isinstance(parent, ast.Attribute | ast.Call | ast.Subscript):
            return current
        if (parent.func if isinstance(parent, ast.Call) else parent.value) is not current:
            return current
        current = parent


def on_accelerator_path(module: Module, node: ast.AST) -> bool:
    """Whether an ``if`` around the node asks for an accelerator already."""
    tests = {f"{spell(module, AVAILABLE)}()", *(f'{name} != "cpu"' for name in resolved_variables(module))}
    child = node
    for parent in module.ancestors(node):
        if isinstance(parent, ast.If) and child in parent.body and module.text(parent.test) in tests:
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        child = parent
    return False


def statement_of(module: Module, node: ast.expr) -> ast.Expr | None:
    """The statement that consists of nothing but ``node``, None where the value is used."""
    parent = module.parent(node)
    return parent if isinstance(parent, ast.Expr) else None


def elsewhere(module: Module, node: ast.expr, otherwise: str, *written: str) -> Fix:
    """A fix that keeps an expression on CUDA and has ``otherwise`` on any other device.

    Args:
        module: the file.
        node: the expression.
        otherwise: text for any other device.
        written: dotted names of torch that ``otherwise`` spells.
    """
    text = f"{module.text(node)} if {cuda_test(module)} else {otherwise}"
    return imported(module, [module.replace(node, parenthesised(module, node, text))], CUDA_AVAILABLE, *written)


def imported(module: Module, edits: Iterable[Edit], *written: str) -> Fix:
    """A fix of the edits and of the imports that the ``written`` dotted names still need in this file."""
    edits = list(edits)
    packages = {name.partition(".")[0] for name in written if module.names.spelling(name) is None}
    for package in sorted(packages):
        for new in import_edits(module, package):
            if any(new.replacement in edit.replacement for edit in edits):
                continue
            same = next((i for i, e in enumerate(edits) if e.start == e.end == new.start), None)
            if same is None:
                edits.append(new)
            else:  # two insertions at one place would be ordered by their text, and the import must come first
                edits[same] = Edit(new.start, new.start, new.replacement + edits[same].replacement)
    return Fix(tuple(edits))


def guarded(
    module: Module,
    statements: Iterable[ast.stmt],
    test: str = CUDA_AVAILABLE,
    inner: Mapping[ast.stmt, list[Edit]] = MappingProxyType({}),
) -> dict[ast.stmt, Fix]:
    """Fixes that run statements only where ``test``, a predicate's dotted name, holds, with edits inside them.

    Neighbours that share one ``if`` share one fix, which carries the inner edits of all of them. A statement under a
    test for any accelerator needs no second one.
    """
    statements = list(statements)
    there = [s for s in statements if test == AVAILABLE and on_accelerator_path(module, s)]
    rest = [s for s in statements if s not in there]
    text, needed = f"{spell(module, test)}()", list[Edit]()
    if test == AVAILABLE and rest:
        text, needed = accelerator_test(module, rest[0])
    fixes = guard(module, rest, text)
    bare = {s: Fix(tuple(inner.get(s, ()))) for s in there}
    together: dict[Fix, list[Edit]] = {}
    for statement, fix in fixes.items():
        together.setdefault(fix, []).extend(inner.get(statement, ()))
    return bare | {s: imported(module, (*fix.edits, *together[fix], *needed), test) for s, fix in fixes.items()}


def by_release(module: Module, statement: ast.Expr, twin: str) -> Fix | None:
    """A fix that keeps a call on CUDA as it is, and has ``twin`` on other accelerators.

    None where the statement does not have its lines to itself.
    """
    if not alone(module, statement):
        return None
    test, edits = accelerator_test(module, statement)
    if on_accelerator_path(module, statement):
        other, edits = "else:", []
    else:
        other = f"elif {test}:"
    fix = choose_by_test(module, statement, [(f"if {cuda_test(module)}:", ""), (other, twin)])
    return imported(module, (*fix.edits, *edits), CUDA_AVAILABLE)


def device_argument(call: ast.Call) -> ast.expr | None:
    """The device a runtime call was given, None for the current one."""
    value = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("device", "index")), None)
    return None if isinstance(value, ast.Constant) and value.value is None else value


def is_portable(argument: ast.expr | None) -> bool:
    """Whether a device argument means the right device on any accelerator: none at all, 0, or a device variable."""
    if argument is None or (isinstance(argument, ast.Constant) and argument.value == 0):
        return True
    name = argument.attr if isinstance(argument, ast.Attribute) else getattr(argument, "id", "")
    return bool(DEVICE_WORD.search(name)) and not name.endswith(("_id", "_ids", "devices"))
