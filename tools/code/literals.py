"""Where a file names CUDA as a device: string literals in places that mean a device, and ``.cuda()`` calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.attempts import decides_by_failure
from tools.code.guards import dotted, is_type_of_cuda
from tools.code.module import Module, fact, string

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
    return is_put_together(node)


def is_put_together(node: ast.AST) -> bool:
    """Whether it is a CUDA device with an index, by other means than an f-string.

    ``"cuda:{}".format(rank)``, ``"cuda:%d" % rank``, ``"cuda:" + str(rank)``.
    """
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Attribute) and node.func.attr == "format" and _starts(node.func.value, r"\{\d?\}")
        )
    if isinstance(node, ast.BinOp):
        return _starts(node.left, "%[ds]" if isinstance(node.op, ast.Mod) else "")
    return False


def _starts(node: ast.expr, index: str) -> bool:
    return re.fullmatch(f"cuda:{index}", string(node) or "") is not None


def index_text(module: Module, node: ast.expr) -> str | None:
    """The index part of a device literal as source text (``0``, ``{rank}``, ``...``), None without one."""
    text = string(node)
    if text is not None:
        return text.partition(":")[2] or None
    if is_put_together(node):
        return "..."
    assert isinstance(node, ast.JoinedStr)
    match = re.fullmatch(r"[fFrR]*(\"\"\"|'''|\"|')cuda:?(.*)\1", module.text(node), re.DOTALL)
    return match.group(2) if match and match.group(2) else None


def device_literals(module: Module) -> Iterator[ast.expr]:
    """Visited CUDA device literals in places that mean a device."""
    for node in module.nodes(ast.Constant, ast.JoinedStr, ast.Call, ast.BinOp):
        if is_cuda_literal(node) and means_device(module, node) and not _is_meant(module, node):
            yield node


def _is_meant(module: Module, node: ast.expr) -> bool:
    """Whether CUDA itself is meant, on whatever machine: a table's entry of that name, an expectation of a test."""
    if _is_tried(module, node):
        return True
    child: ast.AST = node
    for parent in module.ancestors(node):
        if isinstance(parent, ast.Dict):
            keys = [string(k) for k, v in zip(parent.keys, parent.values, strict=True) if v is child and k is not None]
            return "cuda" in keys
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            if parent.func.attr.startswith("assert") and child in parent.args:
                return any(string(other) == "cuda" for other in parent.args)
        if isinstance(parent, ast.stmt):
            return False
        if is_type_of_cuda(module, parent) and isinstance(module.parent(parent), ast.Compare):
            return True
        child = parent
    return False


def _is_tried(module: Module, node: ast.expr) -> bool:
    """Whether the value is thrown away, and only made to see whether that fails."""
    return isinstance(module.statement(node), ast.Expr) and decides_by_failure(module, node)


def means_device(module: Module, node: ast.expr) -> bool:
    """Whether the value at ``node`` is used as a device, by the place it stands in."""
    child: ast.AST = node
    beside_cpu = False
    for parent in module.ancestors(node):
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            beside_cpu |= string(parent.orelse if child is parent.body else parent.body) == "cpu"
            child = parent
        elif isinstance(parent, ast.BoolOp | ast.NamedExpr):
            child = parent
        else:
            given = beside_cpu and isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return)
            unpacked = isinstance(parent, ast.Tuple) and _unpacked(parent, child, module)
            return (given or unpacked or _place(module, parent, child)) and not _for_other_library(module, child)
    return False


OTHER_LIBRARIES = frozenset(
    "xgboost lightgbm catboost cupy cudf cuml rmm jax jaxlib tensorflow numba onnxruntime faiss paddle mxnet "
    "ctranslate2 faster_whisper".split()
)
"""Libraries with devices of their own, which have never heard of PyTorch's."""


def _for_other_library(module: Module, node: ast.AST) -> bool:
    """Whether a value goes into a call of a library that is not built on PyTorch."""
    calls = (parent.func for parent in module.ancestors(node) if isinstance(parent, ast.Call))
    return any((module.qualify(function) or "").partition(".")[0] in OTHER_LIBRARIES for function in calls)


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
        return isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and (
            bool(DEVICE_WORD.search(function.name)) or _returns_cpu(function)
        )
    if isinstance(parent, ast.Dict):
        keys = [string(k) for k, v in zip(parent.keys, parent.values, strict=True) if v is child]
        return any(key is not None and DEVICE_WORD.search(key) and not _is_data(module, parent, key) for key in keys)
    return False


def _returns_cpu(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function answers "cpu" elsewhere."""
    return any(isinstance(n, ast.Return) and string(n.value) == "cpu" for n in ast.walk(function))


_WRITERS = frozenset({"dump", "dumps", "safe_dump"})


def _is_data(module: Module, table: ast.Dict, key: str) -> bool:
    """Whether a dictionary is a record about devices: written out, matched as a pattern, or one of several."""
    child: ast.AST = table
    for parent in module.ancestors(table):
        if isinstance(parent, ast.List | ast.Tuple | ast.Set):
            beside = [
                d for d in parent.elts if isinstance(d, ast.Dict) and key in map(string, d.keys) and d is not child
            ]
            if beside:
                return True
        elif isinstance(parent, ast.Call):
            function = parent.func
            last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if last in _WRITERS:
                return True
        elif not isinstance(parent, ast.Dict | ast.keyword):
            break
        child = parent
    asked = rf"case\s*\{{[^}}\n]*[\"']{key}[\"']\s*:\s*[\"']cuda|\[[\"']{key}[\"']\]\s*!=\s*[\"']cuda"
    return re.search(asked, module.source.text) is not None


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
    if node.arg == "device_types":  # what a kernel is registered for, under whatever name it is registered
        return False
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
                and not _is_tried(module, call)
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
