"""Where a file names CUDA as a device: string literals in places that mean a device, and ``.cuda()`` calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.guards import dotted
from tools.module import Module, fact, string

DEVICE_WORD = re.compile(r"(?i)(^|_|\b)(device|devices|dev)(_?str|_?name|_?type|_?id)?($|_|\b)")
"""Names that hold a device."""

_CUDA = re.compile(r"cuda(:\d+)?")
_CUDA_PREFIX = re.compile(r"cuda:?")
TYPE_TAKERS = frozenset(
    f"torch.{name}"
    for name in (
        *("autocast", "amp.autocast", "amp.autocast_mode.autocast", "amp.custom_fwd", "amp.custom_bwd"),
        *("GradScaler", "amp.GradScaler", "amp.grad_scaler.GradScaler"),
    )
)
"""Callables whose device argument belongs to the rules for mixed precision."""


_WRITTEN_FOR = ("torch.library.", "torch.random.fork_rng")
"""What is named for one device on purpose: a kernel for it, the generators of the devices that are listed beside it."""


def is_cuda_literal(node: ast.AST) -> bool:
    """Whether a node is a string such as ``"cuda"``, ``"cuda:0"`` or an f-string ``f"cuda:{rank}"``."""
    text = string(node)
    if text is not None:
        return _CUDA.fullmatch(text) is not None
    if isinstance(node, ast.JoinedStr) and node.values:
        head = string(node.values[0])
        return head is not None and _CUDA_PREFIX.fullmatch(head) is not None
    return False


def index_text(module: Module, node: ast.expr) -> str | None:
    """The index part of a device literal as source text (``0``, ``{rank}``), None without one."""
    text = string(node)
    if text is not None:
        return text.partition(":")[2] or None
    assert isinstance(node, ast.JoinedStr)
    match = re.fullmatch(r"[fFrR]*(\"\"\"|'''|\"|')cuda:?(.*)\1", module.text(node), re.DOTALL)
    return match.group(2) if match and match.group(2) else None


def device_literals(module: Module) -> Iterator[ast.expr]:
    """Visited CUDA device literals in places that mean a device."""
    for node in module.nodes(ast.Constant, ast.JoinedStr):
        if is_cuda_literal(node) and means_device(module, node):
            yield node


def means_device(module: Module, node: ast.expr) -> bool:
    """Whether the value at ``node`` is used as a device, by the place it stands in."""
    child: ast.AST = node
    for parent in module.ancestors(node):
        if (isinstance(parent, ast.IfExp) and child is not parent.test) or isinstance(
            parent, ast.BoolOp | ast.NamedExpr
        ):
            child = parent
            continue
        if isinstance(parent, ast.Tuple) and _unpacked(parent, child, module):
            return True
        return _place(module, parent, child)
    return False


def _unpacked(values: ast.Tuple, child: ast.AST, module: Module) -> bool:
    statement = module.parent(values)
    if isinstance(statement, ast.Assign) and isinstance(targets := statement.targets[0], ast.Tuple):
        if len(targets.elts) == len(values.elts) and child in values.elts:
            return _names_device(targets.elts[values.elts.index(child)])
    return False


def _place(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(parent, ast.Assign):
        return any(_names_device(target) for target in parent.targets)
    if isinstance(parent, ast.AnnAssign):
        return _names_device(parent.target)
    if isinstance(parent, ast.arguments):
        return _default_of_device(parent, child)
    if isinstance(parent, ast.keyword):
        return _keyword(module, parent)
    if isinstance(parent, ast.Call):
        return child in parent.args and _argument(module, parent, parent.args.index(child))
    if isinstance(parent, ast.Return):
        function = module.function(parent)
        return isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and bool(DEVICE_WORD.search(function.name))
    if isinstance(parent, ast.Dict):
        keys = [string(k) for k, v in zip(parent.keys, parent.values, strict=True) if v is child]
        return any(key is not None and DEVICE_WORD.search(key) for key in keys)
    return False


def _names_device(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        key = string(target.slice)
        return key is not None and bool(DEVICE_WORD.search(key))
    name = dotted(target)
    return name is not None and bool(DEVICE_WORD.search(name.rpartition(".")[2]))


def _default_of_device(arguments: ast.arguments, child: ast.AST) -> bool:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return any(default is child and DEVICE_WORD.search(argument.arg) for argument, default in pairs)


def is_generator(module: Module, call: ast.AST | None) -> bool:
    """Whether a call makes a random generator, whose device is a question of its own (TPU921)."""
    return isinstance(call, ast.Call) and module.qualify(call.func) == "torch.Generator"


def _keyword(module: Module, node: ast.keyword) -> bool:
    call = module.parent(node)
    if not isinstance(call, ast.Call) or node.arg is None:
        return False
    if module.qualify(call.func) in TYPE_TAKERS:
        return False
    if is_generator(module, call) or (module.qualify(call.func) or "").startswith(_WRITTEN_FOR):
        return False
    if node.arg == "default":
        return any(DEVICE_WORD.search(text.lstrip("-").replace("-", "_")) for a in call.args if (text := string(a)))
    return node.arg == "map_location" or bool(DEVICE_WORD.search(node.arg))


_FIRST_ARGUMENT = frozenset({"torch.device", "torch.set_default_device"})
_LOOKUPS = frozenset({"get", "getenv", "getattr", "setdefault", "pop"})


def _argument(module: Module, call: ast.Call, index: int) -> bool:
    name = module.qualify(call.func)
    if name in TYPE_TAKERS or is_generator(module, call) or (name or "").startswith(_WRITTEN_FOR):
        return False
    if name in _FIRST_ARGUMENT:
        return index == 0
    if name == "torch.load":
        return index == 1
    function = call.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if last in ("to", "to_empty") and isinstance(function, ast.Attribute):
        return index == 0
    if last in _LOOKUPS and index:
        key = string(call.args[index - 1])
        return key is not None and bool(DEVICE_WORD.search(key))
    return _own_parameter(module, last, index)


def _own_parameter(module: Module, name: str, index: int) -> bool:
    """Whether the file defines ``name`` with a device as its parameter number ``index``."""
    for function in module.tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == name:
            arguments = [*function.args.posonlyargs, *function.args.args]
            return index < len(arguments) and bool(DEVICE_WORD.search(arguments[index].arg))
    return False


def cuda_moves(module: Module) -> Iterator[ast.Call]:
    """Visited calls of a ``.cuda`` method, on anything but a module that is named so (``torch.cuda`` is no call)."""
    for call in module.nodes(ast.Call):
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr == "cuda" and module.qualify(function) is None:
            if (
                not _moves_storage(module, call)
                and len(call.args) <= 2
                and all(k.arg in ("device", "non_blocking", "memory_format") for k in call.keywords)
            ):
                yield call


def _moves_storage(module: Module, call: ast.Call) -> bool:
    """Whether the call is in a function given as ``map_location``; its argument is a storage without such a ``to``."""
    holder = module.function(call)
    given = module.parent(holder) if isinstance(holder, ast.Lambda) else None
    while isinstance(given, ast.IfExp):
        given = module.parent(given)
    return isinstance(given, ast.keyword) and given.arg == "map_location"


_LEGACY = re.compile(r"torch\.cuda\.(\w+Tensor)")


def legacy_type(module: Module, node: ast.AST) -> str | None:
    """``FloatTensor`` for ``torch.cuda.FloatTensor``, written as a name or as a string."""
    written = string(node)
    if isinstance(node, ast.Attribute) and not node.attr.endswith("Tensor"):
        return None
    if written is None and isinstance(node, ast.Attribute | ast.Name):
        written = module.qualify(node)
    match = _LEGACY.fullmatch(written or "")
    return match.group(1) if match else None


@fact
def placements(module: Module) -> list[ast.expr]:
    """Everything that puts tensors on CUDA: device literals, ``.cuda()`` calls and legacy types."""
    legacy = [n for n in module.nodes(ast.Attribute, ast.Name, ast.Constant) if legacy_type(module, n)]
    return [*device_literals(module), *cuda_moves(module), *legacy]


_TYPE_NAMES = frozenset("cpu cuda mps xpu hip mtia hpu npu xla meta tpu neuron musa mlu ipu auto".split())


def device_names(node: ast.AST) -> frozenset[str] | None:
    """The members of a list, tuple or set of at least two device type names, None for anything else."""
    if not isinstance(node, ast.List | ast.Tuple | ast.Set) or len(node.elts) < 2:
        return None
    names = frozenset(text for element in node.elts if (text := string(element)) is not None)
    return names if len(names) == len(node.elts) and names <= _TYPE_NAMES else None
