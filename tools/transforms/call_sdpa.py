"""Calls scaled_dot_product_attention where attention is written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tools.code.edits import Edit
from tools.code.guards import dotted
from tools.code.module import Module
from tools.code.rewrite import alone
from tools.transforms.base import Advice, Proposal, Subject, Transform

_SCORES = "aten.bmm.default"


@dataclass
class _Written:
    """The statements of one attention, and what they say.

    Attributes:
        first: Where the scores are made.
        last: Where they are multiplied with the values.
    """

    first: ast.Assign
    last: ast.Assign
    query: str
    key: str
    value: str
    scale: str | None
    mask: str | None
    dropout: str | None


class CallSdpa(Transform):
    """Written out, attention keeps the square of its scores in memory; TorchTPU's own kernel does not.

    Taken are neighbouring assignments to one name: a product of queries with transposed keys and a scale, perhaps
    ``masked_fill`` of a comparison with zero by minus infinity, softmax over the last dimension, perhaps a dropout
    module, and the product with the values. A mask that is a buffer made by ``torch.tril(torch.ones(...))`` becomes
    ``is_causal``, every other one an argument.
    """

    ID = "call-sdpa"
    TITLE = "scaled_dot_product_attention for attention written by hand"
    ORDER = 40
    CHANGES = "nothing"

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if any("scaled_dot_product" in entry["op"] for entry in subject.step["operators"]):
            return None
        for path, module in subject.on_path():
            edits = [edit for written in _found(module) for edit in _edits(module, written)]
            if edits:
                return Proposal("call scaled_dot_product_attention", subject.edited(path, edits))
        softmax = any("softmax" in entry["op"] for entry in subject.step["operators"])
        scores = any(entry["op"] == _SCORES for entry in subject.step["operators"])
        return Advice("there may be attention, but not in a form that is recognised") if softmax and scores else None


def _found(module: Module) -> Iterator[_Written]:
    for function in module.nodes(ast.FunctionDef):
        for at, statement in enumerate(function.body):
            written = _begun(module, statement)
            if written is not None and _completed(module, written, function.body[at + 1 :]):
                yield written


def _begun(module: Module, statement: ast.stmt) -> _Written | None:
    """The scores: ``(q @ k.transpose(-2, -1)) * scale``, the factor or divisor where there is one."""
    if not isinstance(statement, ast.Assign) or not _name(statement) or not alone(module, statement):
        return None
    value, scale = statement.value, None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        scale = module.text(value.right)
        scale = f"1.0 / ({scale})" if isinstance(value.op, ast.Div) else scale
        value = value.left
    pair = _product(module, value)
    if pair is None:
        return None
    query, transposed = pair
    key = _transposed(transposed)
    if key is None:
        return None
    return _Written(statement, statement, module.text(query), module.text(key), "", scale or "1.0", None, None)


def _name(statement: ast.stmt) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""


def _product(module: Module, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and module.qualify(node.func) == "torch.matmul" and len(node.args) == 2:
        return node.args[0], node.args[1]
    return None


def _transposed(node: ast.expr) -> ast.expr | None:
    """What is transposed in ``k.transpose(-2, -1)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "transpose":
        return None
    dims = {ast.unparse(argument) for argument in node.args}
    return node.func.value if dims == {"-2", "-1"} else None


def _completed(module: Module, written: _Written, following: list[ast.stmt]) -> bool:
    """Takes in the statements after the scores; says whether they are an attention to its end."""
    name, softmax = _name(written.first), False
    for statement in following:
        if not isinstance(statement, ast.Assign) or not alone(module, statement):
            return False
        value = statement.value
        pair = _product(module, value)
        if pair is not None and dotted(pair[0]) == name:
            written.value, written.last = module.text(pair[1]), statement
            return softmax and not _read_after(following[following.index(statement) + 1 :], name)
        if _name(statement) != name or not isinstance(value, ast.Call):
            return False
        if _is_softmax(module, value, name) and not softmax:
            softmax = True
        elif not softmax and written.mask is None and _fills(value, name):
            written.mask = _mask(module, value)
            if written.mask is None:
                return False
        elif softmax and written.dropout is None and _drops(value, name):
            written.dropout = module.text(value.func)
        else:
            return False
    return False


def _read_after(statements: list[ast.stmt], name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for one in statements for node in ast.walk(one))


def _is_softmax(module: Module, call: ast.Call, name: str) -> bool:
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "softmax"
    known = module.qualify(call.func) in ("torch.nn.functional.softmax", "torch.softmax")
    if not (known or (method and dotted(call.func.value) == name)):  # type: ignore[attr-defined]
        return False
    if known and (not call.args or dotted(call.args[0]) != name):
        return False
    dims = [keyword.value for keyword in call.keywords if keyword.arg == "dim"] or call.args[int(known) :]
    others = [keyword for keyword in call.keywords if keyword.arg != "dim"]
    return not others and len(dims) == 1 and ast.unparse(dims[0]) == "-1"


def _fills(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "masked_fill" and dotted(call.func.value) == name


def _mask(module: Module, call: ast.Call) -> str | None:
    """What is kept by ``masked_fill(mask == 0, float("-inf"))``, as a mask; None where it is something else."""
    if len(call.args) != 2 or ast.unparse(call.args[1]) not in ("float('-inf')", "-torch.inf", "-math.inf"):
        return None
    test = call.args[0]
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return None
    if ast.unparse(test.comparators[0]) != "0":
        return None
    shown = dotted(test.left.value if isinstance(test.left, ast.Subscript) else test.left)
    if shown and shown.startswith("self.") and _is_causal(module, shown.removeprefix("self.")):
        return ""
    return f"{module.text(test.left)} != 0"


def _is_causal(module: Module, buffer: str) -> bool:
    """Whether a buffer of that name is made by ``torch.tril(torch.ones(...))``, however it is viewed."""
    for call in module.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer" and len(call.args) >= 2:
            first, value = call.args[0], call.args[1]
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "view":
                value = value.func.value
            if isinstance(first, ast.Constant) and first.value == buffer:
                return ast.unparse(value).startswith("torch.tril(torch.ones(")
    return False


def _drops(call: ast.Call, name: str) -> bool:
    """``self.attn_dropout(att)``: a module of the class whose name says so."""
    module = dotted(call.func)
    alone = len(call.args) == 1 and dotted(call.args[0]) == name and not call.keywords
    return alone and bool(module) and str(module).startswith("self.") and "drop" in str(module)


def _edits(module: Module, written: _Written) -> list[Edit]:
    source = module.source
    torch = module.names.spelling("torch.nn.functional") or "torch.nn.functional"
    words = [written.query, written.key, written.value]
    if written.mask:
        words.append(f"attn_mask={written.mask}")
    if written.dropout:
        words.append(f"dropout_p={written.dropout}.p if self.training else 0.0")
    if written.mask == "":
        words.append("is_causal=True")
    words.append(f"scale={written.scale}")
    start, end = module.span(written.first)[0], module.span(written.last)[1]
    target = module.text(written.last.targets[0])
    margin = source.text[source.starts[written.first.lineno - 1] : start]
    newline = source.newline
    inner = f",{newline}{margin}{source.indent}".join(words)
    call = f"{torch}.scaled_dot_product_attention({newline}{margin}{source.indent}{inner}{newline}{margin})"
    return [Edit(start, end, f"{target} = {call}")]
