"""Pieces of text that many rules write: guards around statements, values chosen by device, names for the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from tools.code.edits import Edit, Fix
from tools.code.imports import new_import
from tools.code.module import Module, fact, parameters
from tools.code.names import Names
from tools.code.older import ACCELERATOR, is_for_older
from tools.code.source import SourceFile

AVAILABLE = "torch.accelerator.is_available"
CURRENT = "torch.accelerator.current_accelerator"
CUDA_AVAILABLE = "torch.cuda.is_available"

_CONSTANTS = ("DEVICE_TYPE", "ACCELERATOR_TYPE", "RESOLVED_DEVICE_TYPE")


# --- spelling through the file's own imports -------------------------------------------------------------------------


def spell(module: Module, dotted: str) -> str:
    """``dotted`` as this file can write it; plain where nothing binds it (the caller then adds the import)."""
    return module.names.spelling(dotted) or dotted


def import_edits(module: Module, package: str = "torch") -> list[Edit]:
    """What makes ``package`` usable: nothing where the file binds it, else an import after the others."""
    if module.names.spelling(package) is not None:
        return []
    new = new_import(module.source, header(module), package)
    return [new or insert_after_header(module, f"import {package}", blank=False)]


def cuda_test(module: Module) -> str:
    """The text of a call that is true only on CUDA."""
    return f"{spell(module, CUDA_AVAILABLE)}()"


# --- statements ------------------------------------------------------------------------------------------------------


def guard(module: Module, statements: Iterable[ast.stmt], test: str | None = None) -> dict[ast.stmt, Fix]:
    """Fixes that run statements only where ``test`` holds (CUDA by default).

    Neighbours share one ``if``, and a statement right after an equal ``if`` joins it. A statement that shares its line
    with others becomes a conditional expression where it is one, else it has no fix.
    """
    test = test or cuda_test(module)
    wanted = set(statements)
    fixes: dict[ast.stmt, Fix] = {}
    for block in {id(b): b for b in (_block(module, s) for s in wanted) if b}.values():
        index = 0
        while index < len(block):
            run = []
            while index < len(block) and block[index] in wanted and alone(module, block[index]):
                run.append(block[index])
                index += 1
            if run:
                before = block[index - len(run) - 1] if index > len(run) else None
                fix = _guard_run(module, run, before, test)
                fixes.update(dict.fromkeys(run, fix))
            else:
                index += 1
    for statement in wanted - fixes.keys():
        if isinstance(statement, ast.Expr):
            _, end = module.span(statement)
            fixes[statement] = Fix((Edit(end, end, f" if {test} else None"),))
    return fixes


def _block(module: Module, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = module.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def alone(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement has its lines to itself and holds no string that indenting would change."""
    source = module.source
    start, end = module.span(statement)
    before = source.text[source.starts[statement.lineno - 1] : start]
    last = statement.end_lineno or statement.lineno
    after = source.line(last)[end - source.starts[last - 1] :]
    if before.strip() or (after.strip() and not after.lstrip().startswith("#")):
        return False
    inner = (n for n in ast.walk(statement) if isinstance(n, ast.Constant | ast.JoinedStr))
    return all(n.lineno == n.end_lineno or not _is_text(n) for n in inner)


def _is_text(node: ast.Constant | ast.JoinedStr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes)


def nest(module: Module, run: Sequence[ast.stmt], head: str) -> list[Edit]:
    """Edits that put neighbouring statements, alone on their lines, under a line such as ``with lock:``."""
    first = module.source.starts[run[0].lineno - 1]
    margin = module.source.text[first : module.span(run[0])[0]]
    edits = _indent(module, run)
    return [Edit(first, first, f"{margin}{head}{module.source.newline}{edits[0].replacement}"), *edits[1:]]


def _indent(module: Module, run: Sequence[ast.stmt]) -> list[Edit]:
    source, step = module.source, _unit(module, run[0])
    lines = range(run[0].lineno, (run[-1].end_lineno or run[-1].lineno) + 1)
    return [Edit(source.starts[n - 1], source.starts[n - 1], step) for n in lines if source.line(n).strip()]


def choose_by_test(module: Module, statement: ast.stmt, arms: Sequence[tuple[str, str]]) -> Fix:
    """A fix that puts a statement, alone on its lines, under a test, and others under further tests after it.

    Args:
        module: the file.
        statement: what stays, under the first test.
        arms: pairs of a line such as ``if a:``, ``elif b:`` or ``else:``, and the statement under it; the first pair's
            statement is not looked at.
    """
    step = _unit(module, statement)
    below = add_below(module, statement, *(line for head, text in arms[1:] for line in (head, f"{step}{text}")))
    return Fix((*nest(module, [statement], arms[0][0]), below))


def add_branch(module: Module, holder: ast.If, head: str, text: str) -> Edit:
    """An edit that puts a line such as ``elif a:`` and a statement after the body of an ``if`` that has no other."""
    newline, margin = module.source.newline, _margin(module.source, holder.lineno)
    inner = _margin(module.source, holder.body[-1].lineno)
    return _after(module, holder.body[-1], f"{newline}{margin}{head}{newline}{inner}{text}")


def add_below(module: Module, statement: ast.stmt, *lines: str) -> Edit:
    """An edit that puts lines under a statement, alone on its lines, each with the statement's margin before it."""
    between = f"{module.source.newline}{_margin(module.source, statement.lineno)}"
    return _after(module, statement, "".join(f"{between}{line}" for line in lines))


def _after(module: Module, statement: ast.stmt, text: str) -> Edit:
    """An edit that puts lines after those of a statement, behind what is written there as a comment."""
    last = statement.end_lineno or statement.lineno
    end = module.source.starts[last - 1] + len(module.source.line(last).rstrip("\r\n"))
    return Edit(end, end, text)


def _guard_run(module: Module, run: Sequence[ast.stmt], before: ast.stmt | None, test: str) -> Fix:
    joins = (
        isinstance(before, ast.If)
        and not before.orelse
        and module.text(before.test) == test
        and before.lineno != before.body[0].lineno
    )
    return Fix(tuple(_indent(module, run) if joins else nest(module, run, f"if {test}:")))


def _unit(module: Module, statement: ast.stmt) -> str:
    """One level of indentation where a statement stands: what its block has over the one around it.

    At the margin it is that of the nearest block of the file, before the statement or else after it.
    """
    source = module.source
    holder = module.parent(statement)
    if not isinstance(holder, ast.Module) and holder is not None and hasattr(holder, "lineno"):
        outer, inner = _margin(source, holder.lineno), _margin(source, statement.lineno)
        return inner[len(outer) :] if inner.startswith(outer) and len(inner) > len(outer) else source.indent
    near = sorted(module.tree.body, key=lambda s: (s.lineno > statement.lineno, abs(s.lineno - statement.lineno)))
    margins = (_inner_margin(source, other) for other in near if isinstance(getattr(other, "body", None), list))
    return next((margin for margin in margins if margin), source.indent)


def _inner_margin(source: SourceFile, block: ast.stmt) -> str:
    """The margin of the first line in a block, by the text: a scan may have left the block's statements out."""
    lines = iter(range(block.lineno, (block.end_lineno or block.lineno) + 1))
    for line in lines:
        if source.line(line).partition("#")[0].rstrip().endswith(":"):
            break
    inside = (line for line in lines if source.line(line).strip() and not source.line(line).lstrip().startswith("#"))
    return next((_margin(source, line) for line in inside), "")


def _margin(source: SourceFile, line: int) -> str:
    text = source.line(line)
    return text[: len(text) - len(text.lstrip())]


# --- expressions -----------------------------------------------------------------------------------------------------


def parenthesised(module: Module, node: ast.expr, text: str) -> str:
    """``text`` for ``node``'s place, in parentheses where a conditional expression would otherwise bind wrongly."""
    if " if " not in text:
        return text
    parent = module.parent(node)
    plain = isinstance(
        parent,
        ast.Assign
        | ast.AnnAssign
        | ast.Return
        | ast.keyword
        | ast.arguments
        | ast.Expr
        | ast.List
        | ast.Tuple
        | ast.Dict
        | ast.withitem
        | ast.FunctionDef
        | ast.AsyncFunctionDef,
    )
    if (plain and not isinstance(parent, ast.Tuple)) or (isinstance(parent, ast.Call) and node in parent.args):
        return text
    return f"({text})"


# --- the device ------------------------------------------------------------------------------------------------------


def device_type_expression(module: Module, quote: str = '"') -> str:
    """The expression for the type of the accelerator in use, or the CPU's.

    Where the repository is for releases without ``torch.accelerator`` too, those choose between CUDA and the CPU.
    """
    return " ".join(_device_type_parts(module, quote))


def _device_type_parts(module: Module, quote: str) -> tuple[str, str, str]:
    current, available = f"{spell(module, CURRENT)}().type", f"{spell(module, AVAILABLE)}()"
    cpu, cuda = f"{quote}cpu{quote}", f"{quote}cuda{quote}"
    if not is_for_older(module):
        return current, f"if {available}", f"else {cpu}"
    known = f"hasattr({spell(module, 'torch')}, {quote}accelerator{quote})"
    return current, f"if {known} and {available}", f"else ({cuda} if {cuda_test(module)} else {cpu})"


_RESOLVED = (
    r"(?:{torch}\.device\( ?)?{torch}\.accelerator\.current_accelerator\(\)\.type "
    r"if (?:hasattr\({torch}, [\"']accelerator[\"']\) and )?{torch}\.accelerator\.is_available\(\) "
    r"else (?:[\"']cpu[\"']|\([\"']cuda[\"'] if {torch}\.cuda\.is_available\(\) else [\"']cpu[\"']\))(?: ?\))?"
)


def accelerator_test(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """A test that holds where the program has an accelerator, and the edits that it needs."""
    if not is_for_older(module):
        return f"{spell(module, AVAILABLE)}()", import_edits(module)
    name, edits = device_type(module, node)
    return f'{_operand(name)} != "cpu"', edits


def ask_accelerator(module: Module, call: ast.Call) -> list[Edit]:
    """Edits that make a call of ``torch.cuda.is_available`` ask for any accelerator."""
    if not is_for_older(module):
        return [module.replace(call.func, spell(module, AVAILABLE)), *import_edits(module)]
    name, edits = device_type(module, call)
    parent = module.parent(call)
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return [module.replace(parent, f'{_operand(name)} == "cpu"'), *edits]
    test = f'{_operand(name)} != "cpu"'
    return [module.replace(call, f"({test})" if isinstance(parent, ast.Compare | ast.Attribute) else test), *edits]


def off_cuda(
    module: Module, call: ast.expr, text: str, release: tuple[int, int] = ACCELERATOR
) -> tuple[str, list[Edit]]:
    """What takes the place of a call of ``torch.cuda``: ``text``, or both where a release may lack what it calls.

    Args:
        module: the file.
        call: the call.
        text: what does the same through ``torch.accelerator``.
        release: the first one that has it.
    """
    if not is_for_older(module, release):
        return text, import_edits(module)
    name, edits = device_type(module, call)
    return parenthesised(
        module, call, f'{text} if {_operand(name)} not in ("cpu", "cuda") else {module.text(call)}'
    ), edits


def _operand(name: str) -> str:
    return f"({name})" if " if " in name else name


@fact
def resolved_variables(module: Module) -> dict[str, ast.Assign]:
    """Module-level variables that hold the resolved device (or its type) and are assigned once in the whole file."""
    torch = re.escape(module.names.spelling("torch") or "torch")
    pattern = re.compile(_RESOLVED.replace("{torch}", torch))

    def resolves(value: ast.expr) -> bool:
        return pattern.fullmatch(re.sub(r"\s+", " ", module.text(value))) is not None

    found = {}
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and resolves(statement.value) and _bound_once(module, target.id):
                found[target.id] = statement
    return found


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _bound_once(module: Module, name: str) -> bool:
    """Whether the module's own code binds a name in exactly one place and no function declares it global."""
    text = module.source.text
    if "global" in text and re.search(rf"\bglobal\b[^\n]*\b{name}\b", text):
        return False
    count = 0
    pending: list[ast.AST] = [module.tree]
    while pending:
        node = pending.pop()
        count += _binds(node, name)
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
    return count == 1


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler)
        and node.name == name
    )


def device(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """A name that stands for the resolved device at ``node``, and the edits that bring it into being.

    An existing module-level variable that resolves the device is used where it is in scope; else a constant with the
    device's type is put after the imports. Good wherever a device or its type is expected as an argument.
    """
    return _device(module, node, type_only=False)


def device_type(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """A name for the resolved device's *type* (a string) at ``node``, and the edits that bring it into being."""
    return _device(module, node, type_only=True)


def _device(module: Module, node: ast.AST, *, type_only: bool) -> tuple[str, list[Edit]]:
    for name, statement in resolved_variables(module).items():
        is_type = isinstance(statement.value, ast.IfExp)
        if _visible(module, name, statement, node):
            if is_type or not type_only:
                return name, []
            return f"{name}.type", []
    after = _torch_import(module)
    if after is None and module.names.spelling("torch") is not None:
        return device_type_expression(module), []
    if module.function(node) is None and getattr(node, "lineno", 0) <= _end(after or header(module)):
        return device_type_expression(module), []
    return _constant(module, after)


def _end(statements: Sequence[ast.stmt]) -> int:
    return (statements[-1].end_lineno or statements[-1].lineno) if statements else 0


@fact
def _torch_import(module: Module) -> list[ast.stmt] | None:
    """The statements after which ``torch`` is bound at module level: the header, or a later run of imports."""
    leading = header(module)
    rest = module.tree.body[len(leading) :]
    if _binds_torch(leading):
        return leading
    for index, statement in enumerate(rest):
        if _binds_torch([statement]):
            last = index
            while last + 1 < len(rest) and isinstance(rest[last + 1], ast.Import | ast.ImportFrom):
                last += 1
            return [*leading, *rest[: last + 1]]
    return None


def _binds_torch(statements: Sequence[ast.stmt]) -> bool:
    return Names([s for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]).spelling("torch") is not None


def _constant(module: Module, after: Sequence[ast.stmt] | None) -> tuple[str, list[Edit]]:
    text = module.source.text
    name = next(constant for constant in _CONSTANTS if constant not in text)
    line = f"{name} = {device_type_expression(module)}"
    if is_for_older(module):
        inner = f"{module.source.newline}    "
        parts = _device_type_parts(module, '"')
        line = f"{name} = ({inner}{inner.join(parts)}{module.source.newline})"
    leading = after or header(module)
    if module.names.spelling("torch") is not None:
        return name, [insert_after(module, leading, line, blank=True)]
    new = new_import(module.source, leading, "torch")
    if new is not None:
        return name, [new, insert_after(module, leading, line, blank=True)]
    line = f"import torch{module.source.newline}{module.source.newline}{line}"
    return name, [insert_after(module, leading, line, blank=not header(module))]


def _visible(module: Module, name: str, assignment: ast.Assign, node: ast.AST) -> bool:
    for holder in module.ancestors(node):
        if isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if name in parameters(holder) or any(_binds(inner, name) for inner in ast.walk(holder)):
                return False
    inside_function = module.function(node) is not None and node not in _defaults(module, node)
    return inside_function or getattr(node, "lineno", 0) > (assignment.end_lineno or 0)


def _defaults(module: Module, node: ast.AST) -> list[ast.AST]:
    """The node itself where it is part of a parameter's default, which is evaluated when the function is defined."""
    child = node
    for holder in module.ancestors(node):
        if isinstance(holder, ast.arguments):
            return [node]
        if isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef) and child in holder.decorator_list:
            return [node]
        if isinstance(holder, ast.stmt):
            return []
        child = holder
    return []


# --- the top of the file ---------------------------------------------------------------------------------------------


@fact
def header(module: Module) -> list[ast.stmt]:
    """The leading statements up to and including the last import that comes before any other code."""
    last = 0
    for index, statement in enumerate(module.tree.body):
        if _imports(statement):
            last = index + 1
        elif isinstance(statement, _CODE):
            break
        elif index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            last = 1
    return module.tree.body[:last]


_CODE = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.For, ast.While, ast.With)


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Try):
        return isinstance(statement.body[0], ast.Import | ast.ImportFrom) and all(map(_only_imports, statement.body))
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _only_imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | ast.Pass)


def insert_after_header(module: Module, text: str, *, blank: bool) -> Edit:
    """An insertion of whole lines after the file's leading imports."""
    return insert_after(module, header(module), text, blank=blank)


def insert_after(module: Module, statements: Sequence[ast.stmt], text: str, *, blank: bool) -> Edit:
    """An insertion of whole lines after some of the module's leading statements (at the top if there are none).

    Args:
        module: the file.
        statements: leading statements, the last of which ends its line.
        text: the lines, without a final line ending.
        blank: whether an empty line separates it from the imports.
    """
    source = module.source
    newline = source.newline
    if not statements:
        place = _after_comments(module)
        return Edit(place, place, f"{text}{newline}{newline if blank else ''}")
    line = _end(statements)
    if line < len(source.starts):
        place = source.starts[line]
        return Edit(place, place, f"{newline if blank else ''}{text}{newline}")
    place = len(source.text)
    return Edit(place, place, f"{newline}{newline if blank else ''}{text}{newline}")


def _after_comments(module: Module) -> int:
    """Where a file without imports takes its first line of code: behind the leading comments (encoding, licence)."""
    source = module.source
    for number in range(1, len(source.starts) + 1):
        if not source.line(number).startswith("#"):
            return source.starts[number - 1]
    return len(source.text)
