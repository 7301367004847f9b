"""Arguments of calls: found by position or name, added, replaced and removed by exact spans."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tools.code.edits import Edit
from tools.code.module import Module, Node, keyword
from tools.code.rewrite import device_type


def argument(call: ast.Call, name: str, index: int | None = None) -> ast.expr | None:
    """The value given for a parameter, by keyword or by position; None where it is absent or behind ``*``."""
    found = keyword(call, name)
    if found is not None:
        return found.value
    if index is None or len(call.args) <= index:
        return None
    before = call.args[: index + 1]
    return None if any(isinstance(a, ast.Starred) for a in before) else call.args[index]


def first_in_functions(module: Module, nodes: Iterable[Node]) -> Iterator[Node]:
    """The first of the nodes in each function, and all that are in none: what one change answers is told once."""
    seen: set[ast.AST | None] = {None}
    for node in sorted(nodes, key=module.span):
        function = module.function(node)
        if function not in seen:
            seen.add(function)
            yield node
        elif function is None:
            yield node


def spread(call: ast.Call) -> bool:
    """Whether a call takes ``*args`` or ``**kwargs``, so that not all its arguments are known."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def add_keyword(module: Module, call: ast.Call, text: str) -> Edit:
    """An edit that gives the call one more keyword argument, written ``name=value``."""
    place, any_argument = _end_of_arguments(module, call)
    return Edit(place, place, f", {text}" if any_argument else text)


def prepend_argument(module: Module, call: ast.Call, text: str) -> Edit:
    """An edit that gives the call a new first argument."""
    arguments = _in_order(call)
    opening = _opening(module, call)
    return Edit(opening, opening, f"{text}, " if arguments else text)


def remove_keyword(module: Module, call: ast.Call, name: str) -> Edit:
    """An edit that takes the keyword argument ``name`` out of the call, comma included."""
    gone = keyword(call, name)
    assert gone is not None
    order = _in_order(call)
    index = order.index(gone)
    start, end = module.span(gone)
    if index > 0:
        return Edit(_past_parentheses(module, module.span(order[index - 1])[1], start), end, "")
    if len(order) > 1:
        return Edit(start, module.span(order[1])[0], "")
    return Edit(start, end, "")


def outer_span(module: Module, call: ast.Call, value: ast.expr) -> tuple[int, int]:
    """The span of an argument's value with the parentheses around it, which ``ast`` leaves out."""
    text = module.source.text
    start, end = module.span(value)
    first, last = module.span(call.func)[1], module.span(call)[1] - 1
    while True:
        left, right = start - 1, end
        while left > first and text[left].isspace():
            left -= 1
        while right < last and text[right].isspace():
            right += 1
        if left > _opening(module, call) - 1 and right < last and text[left] == "(" and text[right] == ")":
            start, end = left, right + 1
        else:
            return start, end


def conjunction(module: Module, call: ast.Call, value: ast.expr, condition: str) -> Edit:
    """An edit that makes an argument hold only where ``condition`` does too (``True`` gives way to it)."""
    start, end = outer_span(module, call, value)
    if isinstance(value, ast.Constant) and value.value is True:
        return Edit(start, end, condition)
    text = module.source.text[start:end]
    loose = isinstance(value, ast.IfExp | ast.Lambda | ast.NamedExpr) or (
        isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or)
    )
    if loose and (start, end) == module.span(value):
        text = f"({text})"
    return Edit(start, end, f"{text} and {condition}")


def only_if(module: Module, call: ast.Call, value: ast.expr, condition: str, otherwise: str) -> Edit:
    """An edit that gives an argument its value where ``condition`` holds and ``otherwise`` elsewhere."""
    start, end = outer_span(module, call, value)
    text = module.source.text[start:end]
    if isinstance(value, ast.IfExp | ast.Lambda) and (start, end) == module.span(value):
        text = f"({text})"
    return Edit(start, end, f"{text} if {condition} else {otherwise}")


def on_cpu_or_cuda(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """A test that holds on the CPU and on CUDA, for what must stay as it is there, and the edits it needs."""
    name, edits = device_type_operand(module, node)
    return f'{name} in ("cpu", "cuda")', edits


def off_cpu_and_cuda(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """The opposite test, for what is done only where there is another device."""
    name, edits = device_type_operand(module, node)
    return f'{name} not in ("cpu", "cuda")', edits


def device_type_operand(module: Module, node: ast.AST) -> tuple[str, list[Edit]]:
    """As ``rewrite.device_type``, in parentheses where it has to be written out, so that it can be compared."""
    name, edits = device_type(module, node)
    return (f"({name})" if " if " in name else name), edits


def is_on_cpu_or_cuda(test: ast.expr) -> bool:
    """Whether a test is one that ``on_cpu_or_cuda`` writes."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.In | ast.NotIn)
        and isinstance(choices := test.comparators[0], ast.Tuple | ast.List | ast.Set)
        and {"cpu", "cuda"} <= {c.value for c in choices.elts if isinstance(c, ast.Constant)}
    )


def _in_order(call: ast.Call) -> list[ast.expr | ast.keyword]:
    every: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(every, key=lambda node: (node.lineno, node.col_offset))


def _opening(module: Module, call: ast.Call) -> int:
    """The offset behind the call's opening parenthesis; the function itself may stand in parentheses."""
    text = module.source.text
    place = module.span(call.func)[1]
    while text[place] != "(":
        place += 1
    return place + 1


def _end_of_arguments(module: Module, call: ast.Call) -> tuple[int, bool]:
    order = _in_order(call)
    end = module.span(call)[1] - 1
    if not order:
        return end, False
    return _past_parentheses(module, module.span(order[-1])[1], end), True


def _past_parentheses(module: Module, place: int, end: int) -> int:
    """Moves behind closing parentheses that belong to the argument before ``place``; comments are skipped."""
    text, result, comment = module.source.text, place, False
    for index in range(place, end):
        if text[index] == "#":
            comment = True
        elif text[index] in "\r\n":
            comment = False
        elif text[index] == ")" and not comment:
            result = index + 1
    return result
