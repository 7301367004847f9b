"""Where a file speaks to torch_xla, and whether it is a torch_xla program or one that can do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted
from tools.code.module import Module, fact
from tools.code.rewrite import alone, spell

MODEL = "torch_xla.core.xla_model"
RUNTIME = "torch_xla.runtime"
INITIALIZED = "torch.distributed.is_initialized"
RANK = "torch.distributed.get_rank"

OPTIONAL = "torch_xla is optional here: give torch_tpu a branch of its own, by torch.accelerator"
"""What a person is told where the file works without torch_xla too."""


@fact
def needs_torch_xla(module: Module) -> bool:
    """Whether the file imports torch_xla whenever it is loaded, so that all of it is a torch_xla program."""
    return any(_of_torch_xla(statement) for statement in module.tree.body)


_ASIDE = re.compile(r"(?i)xla|(^|[^a-z])tpu|tpu([^a-z]|$)|\bxm\b")
_ASIDE_NAME = re.compile(r"XLA|TPU|(?i:(^|_)(xla|tpu)(_|$))")
_ASIDE_FILE = re.compile(r"(?i)(^|[/_])(xla|tpu)([_/.]|$)")


def aside(module: Module, node: ast.AST) -> bool:
    """Whether only users of torch_xla come to a place of a file that works without it, so that nothing is to be done.

    That is told by a test around it (``if XLA_AVAILABLE:``), or by a function, a class or a file that is named for it.
    """
    if needs_torch_xla(module):
        return False
    if _ASIDE_FILE.search(module.source.relative):
        return True
    child = node
    for parent in module.ancestors(node):
        if (
            isinstance(parent, ast.If | ast.IfExp)
            and child is not parent.test
            and _ASIDE.search(module.text(parent.test))
        ):
            return True
        if isinstance(parent, ast.BoolOp) and child in parent.values[1:]:
            if any(_ASIDE.search(module.text(value)) for value in parent.values[: parent.values.index(child)]):
                return True
        if isinstance(parent, ast.FunctionDef | ast.ClassDef) and _ASIDE_NAME.search(parent.name):
            return True
        child = parent
    return False


def _of_torch_xla(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] == "torch_xla" for alias in statement.names)
    return (
        isinstance(statement, ast.ImportFrom)
        and not statement.level
        and (statement.module or "").partition(".")[0] == "torch_xla"
    )


def imports_torch_xla(statement: ast.stmt) -> bool:
    """Whether an import statement is about torch_xla and nothing else."""
    if isinstance(statement, ast.Import):
        return all(alias.name.partition(".")[0] == "torch_xla" for alias in statement.names)
    return _of_torch_xla(statement)


@fact
def several_processes(module: Module) -> bool:
    """Whether the file starts several processes, or is written for them."""
    return _SEVERAL.search(module.source.text) is not None


_SEVERAL = re.compile(r"xla_multiprocessing|\bxmp\.|\b(torch_)?xla\.launch\b|init_process_group|xla_backend")


def model_calls(module: Module, *names: str) -> Iterator[ast.Call]:
    """Visited calls of functions of torch_xla's model module."""
    yield from module.calls(*(f"{MODEL}.{name}" for name in names))


def first_rank_test(module: Module) -> str:
    """A test that holds on the first process, and where there is one only."""
    return f"not {spell(module, INITIALIZED)}() or {spell(module, RANK)}() == 0"


def statement_call(module: Module, call: ast.Call) -> ast.Expr | None:
    """The statement that is nothing but the call, where it has its lines to itself."""
    parent = module.parent(call)
    return parent if isinstance(parent, ast.Expr) and alone(module, parent) else None


def dropped(module: Module, statements: Iterable[ast.stmt]) -> dict[ast.stmt, Fix]:
    """Fixes that take statements out, lines and all; a block that would be empty keeps a ``pass``."""
    wanted = set(statements)
    fixes = {}
    for statement in wanted:
        block = next(
            b
            for name in ("body", "orelse", "finalbody")
            if isinstance(b := getattr(module.parent(statement) or module.tree, name, None), list) and statement in b
        )
        if all(other in wanted for other in block) and block[0] is statement and block is not module.tree.body:
            fixes[statement] = Fix((module.replace(statement, "pass"),))
        else:
            fixes[statement] = Fix((_lines(module, statement),))
    return fixes


def _lines(module: Module, statement: ast.stmt) -> Edit:
    source = module.source
    first, last = source.starts[statement.lineno - 1], statement.end_lineno or statement.lineno
    end = source.starts[last] if last < len(source.starts) else len(source.text)
    return Edit(first, end, "")


def names_something(node: ast.expr | None) -> bool:
    """Whether an argument is a plain name, which can be written again elsewhere."""
    return node is not None and dotted(node) is not None
