"""Which code runs on CUDA only: tests that hold on CUDA, and the statements under them."""

from __future__ import annotations

import ast
import re

from tools.code.absence import stands_in
from tools.code.module import Module, around, fact, string
from tools.project import is_test

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})


def is_cuda_test(module: Module, test: ast.expr, *, flags: bool = True) -> bool:
    """Whether ``test`` can hold only where CUDA is in use.

    Args:
        module: the file.
        test: an expression in boolean position.
        flags: whether variables that were assigned such a test count (``use_cuda = torch.cuda.is_available()``).
    """
    if isinstance(test, ast.BoolOp):
        results = (is_cuda_test(module, value, flags=flags) for value in test.values)
        return any(results) if isinstance(test.op, ast.And) else all(results)
    if isinstance(test, ast.IfExp):  # `True if torch.cuda.is_available() else False`
        return _is_constant(test.body, True) and _is_constant(test.orelse, False) and is_cuda_test(module, test.test)
    if isinstance(test, ast.Call):
        return module.qualify(test.func) in _CUDA_PREDICATES or _is_prefix_test(test) or is_named_test(module, test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _is_comparison(module, test)
    if isinstance(test, ast.Attribute) and (test.attr == "is_cuda" or module.qualify(test) == "torch.version.cuda"):
        return True
    name = dotted(test)
    if name is not None and _CONSTANT.fullmatch(name.rpartition(".")[2]):
        return True
    return flags and name in cuda_flags(module)


def _is_constant(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


_CUDA_PREDICATES = frozenset(
    {"torch.cuda.is_initialized", "torch.cuda.is_available", "torch.cuda.device_count", "torch.cuda.is_bf16_supported"}
)


_NAMED = re.compile(
    r"_*(is|has|have)_(torch_|pytorch_)?cuda(_\w+)?|_*(use|using|with)_cuda|_*(torch_)?cuda_(is_)?(available|enabled|present)"
)
_CUDA_FUNCTION = re.compile(
    r"(?i)cuda|_*(with|only|requires?|is|has|num|test)_?cuda(?![a-z])\w*|test_\w+_cuda|_*cuda_(device_)?(count|devices|version)|\w*nvidia\w*|get_torch_cuda_\w+|check_tensorrt"
    r"|_*is_(volta|turing|ampere|ada|hopper|blackwell)\w*|(least|most)_used_cuda_\w+|_*get_(max_)?cuda_memory\w*"
    r"|_*(check|require|assert|ensure|validate)_\w*cuda(_\w+)?"
)
_CONSTANT = re.compile(r"_?(IS|ON)_(CUDA|ROCM|HIP)(_[A-Z]+)?|(bf16|fp16|fp8)_cuda")
_OTHER_CLASS = re.compile(r"XLA|Cuda\w*(Generator|Graph|Kernel|R[Nn][Gg])")
_CUDA_CLASS = re.compile(r"CUDA|Cuda(?![a-z])")


def is_named_test(module: Module, call: ast.Call) -> bool:
    """Whether a call asks for CUDA through a function of the user's own, or for a class that is named for it."""
    holder, _, name = (dotted(call.func) or "").rpartition(".")
    if name == "is_available" and _CUDA_CLASS.search(holder):
        return True
    if name == "isinstance" and len(call.args) == 2:
        return bool(_CUDA_CLASS.search((dotted(call.args[1]) or "").rpartition(".")[2]))
    return bool(_NAMED.fullmatch(name)) and not (module.qualify(call.func) or "").startswith("torch.")


def _is_prefix_test(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "startswith"
        and len(call.args) == 1
        and (string(call.args[0]) or "").startswith("cuda")
    )


def _is_comparison(module: Module, test: ast.Compare) -> bool:
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(operator, ast.Eq):
        return any(
            (string(side) or "").startswith("cuda") or _is_member(module, side) or is_type_of_cuda(module, side)
            for side in (left, right)
        )
    if isinstance(operator, ast.In):
        return string(left) == "cuda"
    if isinstance(operator, ast.Gt | ast.GtE | ast.NotEq):
        return isinstance(left, ast.Call) and module.qualify(left.func) == "torch.cuda.device_count"
    if isinstance(operator, ast.IsNot):
        return module.qualify(left) == "torch.version.cuda"
    return False


def is_type_of_cuda(module: Module, node: ast.AST) -> bool:
    """Whether an expression is ``torch.device("cuda").type``, a long way to write ``"cuda"``."""
    call = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or module.qualify(call.func) != "torch.device":
        return False
    return string(call.args[0]) == "cuda"


def _is_member(module: Module, side: ast.expr) -> bool:
    """Whether it is CUDA as a member of somebody's own enumeration: ``RNGType.CUDA``, Accelerate's ``MULTI_GPU``."""
    member = isinstance(side, ast.Attribute) and side.attr in ("CUDA", "MULTI_GPU")
    return member and module.qualify(side.value) != "torch"  # type: ignore[attr-defined]


def availability_calls(module: Module, test: ast.expr) -> list[ast.Call]:
    """Calls of ``torch.cuda.is_available`` inside a test."""
    calls = (n for n in ast.walk(test) if isinstance(n, ast.Call))
    return [c for c in calls if module.qualify(c.func) == "torch.cuda.is_available"]


def is_no_cuda_test(module: Module, test: ast.expr) -> bool:
    """Whether ``test`` holds wherever CUDA is absent, so that what follows an exit under it is CUDA only."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_cuda_test(module, test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if isinstance(test.ops[0], ast.NotEq):
            return any(string(side) == "cuda" for side in (test.left, test.comparators[0]))
        if isinstance(test.ops[0], ast.Eq):
            left, right = test.left, test.comparators[0]
            count = isinstance(left, ast.Call) and module.qualify(left.func) == "torch.cuda.device_count"
            return count and isinstance(right, ast.Constant) and right.value == 0
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(is_no_cuda_test(module, value) for value in test.values)
    return False


@fact
def cuda_flags(module: Module) -> frozenset[str]:
    """Variables (``use_cuda``, ``args.cuda``) whose every assignment in the file is a test for CUDA."""
    yes: set[str] = set()
    no: set[str] = set()
    for statement in module.nodes(ast.Assign):
        for target in statement.targets:
            name = dotted(target)
            if name:
                (yes if is_cuda_test(module, statement.value, flags=False) else no).add(name)
    return frozenset(yes - no)


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` as text, None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def assigned(module: Module, node: ast.expr) -> list[ast.expr]:
    """What the function around a name, or else the file, assigns to it; nothing for any other expression."""
    name = dotted(node)
    if name is None:
        return []
    scope = module.function(node) or module.tree
    return [s.value for s in ast.walk(scope) if isinstance(s, ast.Assign) and name in map(dotted, s.targets)]


def on_cuda_path(module: Module, node: ast.AST) -> bool:
    """Whether ``node`` is to stay as it is: it runs where CUDA is in use, or for a PyTorch that lacks what replaces it.

    The first is told by the tests around and before it, by a method or class that is named for CUDA, by a library that
    only CUDA has in the same function, and by a test for ``("cpu", "cuda")`` that a fix wrote; the second by
    ``tools.code.absence``. What runs on the CPU alone stays too.
    """
    return _with_cuda_library(module, node) or _under_cuda(module, node) or stands_in(module, node)


@around
def _under_cuda(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    if _guards(module, parent, child) or _after_exit(module, parent, child) or _named_for_cuda(parent):
        return True
    if isinstance(parent, ast.Try) and child in parent.body:
        return any(_binds_extension(statement) for statement in parent.body)
    if not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return _skipped_without_cuda(module, parent) or parent.name in _helpers_of_skipped(module)


CUDA_LIBRARIES = frozenset(
    {"tensorrt", "tensorrt_llm", "torch_tensorrt", "torch2trt", "pycuda", "megatron", "transformer_engine"}
)
"""Libraries without which the code around them has no purpose, and which exist for CUDA only."""


_TESTS_ON_GPUS = re.compile(r"(?i)multi_?gpu|(^|_)(cuda|gpu)s?[_.]")
_FOR_LIBRARY = re.compile(r"^_cuda_|(^|_)(trt|tensorrt|bnb|bitsandbytes|transformer_engine)[_.]")


def _with_cuda_library(module: Module, node: ast.AST) -> bool:
    """Whether the function or class around it, or the whole file, is written around a library for CUDA."""
    path = module.source.relative
    name = path.rpartition("/")[2]
    if _FOR_LIBRARY.search(name) or (is_test(path) and _TESTS_ON_GPUS.search(name)):
        return True
    if is_test(path) and path.removesuffix(name).rstrip("/") in module.project.kernel_folders:
        return True
    if _calls_extension(module, node):
        return True
    homes = _library_homes(module)
    return bool(homes) and (module.tree in homes or any(parent in homes for parent in module.ancestors(node)))


@fact
def _library_homes(module: Module) -> frozenset[ast.AST]:
    """The functions that import such a library, and the module where it does so itself."""
    homes: set[ast.AST] = set()
    statements: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
    for statement in statements:
        names = [a.name for a in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
        if isinstance(statement, ast.ImportFrom) and statement.level:
            continue
        if any(name.partition(".")[0] in CUDA_LIBRARIES for name in names):
            if not any(isinstance(parent, ast.Try) for parent in module.ancestors(statement)):
                homes.add(module.function(statement) or module.tree)
    return frozenset(homes)


def _binds_extension(statement: ast.stmt) -> bool:
    """Whether a statement imports a compiled extension that is named for CUDA, such as ``fused_adam_cuda``."""
    return isinstance(statement, ast.Import | ast.ImportFrom) and any(
        _EXTENSION.search(alias.name) for alias in statement.names
    )


_EXTENSION = re.compile(r"[a-z0-9]_cuda$")


@fact
def _extensions(module: Module) -> frozenset[str]:
    """Names of such extensions: imported, or loaded by a builder."""
    imports: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
    found = {a.asname or a.name.rpartition(".")[2] for s in imports if _binds_extension(s) for a in s.names}
    for statement in module.nodes(ast.Assign):
        value, target = statement.value, statement.targets[0]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "load":
            if isinstance(target, ast.Name) and _EXTENSION.search(target.id):
                found.add(target.id)
    return frozenset(found)


def _calls_extension(module: Module, node: ast.AST) -> bool:
    """Whether the function around a node calls a compiled extension that is named for CUDA."""
    names = _extensions(module)
    function = module.function(node) if names else None
    if function is None:
        return False
    key = (_calls_extension, function)
    if key not in module.facts:
        module.facts[key] = re.search(rf"\b({'|'.join(sorted(names))})\.\w+", module.text(function)) is not None
    return module.facts[key]  # type: ignore[return-value]


@fact
def _helpers_of_skipped(module: Module) -> frozenset[str]:
    """Functions of a test file that only tests which are skipped without CUDA use."""
    if not is_test(module.source.relative) or not _SKIP.search(module.source.text):
        return frozenset()
    blocks = _top_blocks(module.source.text)
    named = {match.group(1): block for block in blocks if (match := _DEF.search(block))}
    skipped = {
        n
        for n, b in named.items()
        if (m := _DECORATED_SKIP.search(b.partition("\ndef ")[0])) and _GPU.search(m.group())
    }
    for _ in range(2):
        for name in named.keys() - skipped:
            used = [b for b in blocks if b is not named[name] and re.search(rf"\b{name}\b", b)]
            if used and not name.startswith("test") and all(any(b is named[n] for n in skipped) for b in used):
                skipped.add(name)
    return frozenset(skipped)


_DEF = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_DECORATED_SKIP = re.compile(r"^@[^\n]*(?i:skip_?(?:if|unless)|require)[\s\S]*", re.MULTILINE)
_GPU = re.compile(r"(?i)cuda|gpu")


def _top_blocks(text: str) -> list[str]:
    """The statements of a module as text, each definition with its decorators."""
    blocks: list[str] = []
    for line in text.splitlines(keepends=True):
        continues = (
            not line.strip()
            or line[0] in " \t)]}#"
            or (blocks and blocks[-1].startswith("@") and not _DEF.search(blocks[-1]))
        )
        if blocks and continues:
            blocks[-1] += line
        else:
            blocks.append(line)
    return blocks


def _named_for_cuda(holder: ast.AST) -> bool:
    """Whether it is a ``cuda`` method, a question about CUDA, a decorator for it, or one class of several.

    Such as ``has_cuda``, ``with_cuda`` and ``class CUDAAccelerator(Accelerator)``; classes for torch_xla count too.
    """
    if isinstance(holder, ast.FunctionDef):
        return _CUDA_FUNCTION.fullmatch(holder.name) is not None
    if isinstance(holder, ast.ClassDef):
        bases = [(dotted(base) or "").rpartition(".")[2] for base in holder.bases]
        if _OTHER_CLASS.search(holder.name) or "DataParallel" in bases:
            return True
        plain = _CUDA_CLASS.sub("", holder.name)
        return plain != holder.name and any(base and plain.endswith(base) for base in bases)
    return False


def only_cpu_or_cuda(test: ast.expr, outcome: bool = True) -> bool:
    """Whether a test that comes out so leaves the CPU and CUDA only: ``DEVICE_TYPE in ("cpu", "cuda")``."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.In if outcome else ast.NotIn)
        and isinstance(choices := test.comparators[0], ast.Tuple | ast.List | ast.Set)
        and {"cpu", "cuda"} == {string(c) for c in choices.elts} - {"meta"}
    )


def _guards(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(parent, ast.If):
        if child in parent.body:
            return _keeps(module, parent.test) or _for_vendor(module, parent)
        return child in parent.orelse and _not_elsewhere(module, parent.test)
    if isinstance(parent, ast.IfExp):
        if child is parent.body:
            return _keeps(module, parent.test)
        return child is parent.orelse and _not_elsewhere(module, parent.test)
    if isinstance(parent, ast.With) and child in parent.body:
        return any(_CUPY.search(module.text(item.context_expr)) for item in parent.items)
    if isinstance(parent, ast.For) and child in parent.body:
        return _counts_cuda(module, parent.iter) or _asks_each(module, parent)
    if isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp) and child is parent.elt:
        return _counts_cuda(module, parent.generators[0].iter)
    if isinstance(parent, ast.BoolOp) and child in parent.values:
        before = parent.values[: parent.values.index(child)]
        check = is_cuda_test if isinstance(parent.op, ast.And) else is_no_cuda_test
        return any(check(module, value) for value in before)
    return False


_PLACES = re.compile(r"\bdevice\s*=(?!=)|\.to\(|\.cuda\(|[\"']cuda")


def _asks_nccl(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(string(s) in ("nccl", "smddp") or (dotted(s) or "").endswith(".NCCL") for s in sides)


_COLLECTIVES = re.compile(r"\b(hccl|cncl|mccl|xccl)\b", re.IGNORECASE)


def _for_vendor(module: Module, branch: ast.If) -> bool:
    """Whether it is the branch for NCCL among those of other vendors' libraries, or for CUDA in a helper of tests."""
    test = branch.test
    if isinstance(test, ast.Name):
        return test.id == "cuda" and is_test(module.source.relative)
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    if not any(_asks_nccl(part) for part in parts):
        return False
    if not any(_PLACES.search(module.text(statement)) for statement in branch.body):
        return True
    function = module.function(branch)
    return function is not None and _COLLECTIVES.search(module.text(function)) is not None


def _counts_cuda(module: Module, over: ast.expr) -> bool:
    """Whether a loop goes over ``range(torch.cuda.device_count())``, so that its body runs on CUDA alone."""
    call = over.args[0] if isinstance(over, ast.Call) and len(over.args) == 1 else None
    return isinstance(call, ast.Call) and module.qualify(call.func) == "torch.cuda.device_count"


_OTHER_DEVICE = re.compile(
    r"\b(is_(torch_)?(xla|npu|mlu|musa|sdaa|hpu|xpu|mps)_available|torch\.(backends\.)?(npu|mlu|musa|hpu|xpu|mps)\.is_available)\("
)


def _keeps(module: Module, test: ast.expr) -> bool:
    """Whether what stands under a test stays: it is for CUDA, for the CPU, or for another vendor's device."""
    if is_cuda_test(module, test) or only_cpu_or_cuda(test) or _is_cpu_test(test):
        return True
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    if any(_among_known(part) for part in parts):
        return True
    return any(isinstance(part, ast.Call) and _OTHER_DEVICE.match(module.text(part)) for part in parts)


def _among_known(test: ast.expr) -> bool:
    """Whether a test is for one of several devices that are listed, CUDA among them; TPU111 looks at the list."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.In):
        return False
    choices = test.comparators[0]
    names = {string(c) for c in choices.elts} if isinstance(choices, ast.Tuple | ast.List | ast.Set) else set()
    is_type = isinstance(test.left, ast.Attribute) and test.left.attr == "type"
    return (
        is_type and len(names) > 1 and "cuda" in names and names <= {"cuda", "mps", "xpu", "npu", "mlu", "hpu", "mtia"}
    )


_CUPY = re.compile(r"\b(cp|cupy)\.cuda\.")
_ASKS_EACH = re.compile(r"\bcuda\.(get_device_(properties|capability|name)|mem_get_info)\(")


def _asks_each(module: Module, loop: ast.For) -> bool:
    """Whether a loop over a number of devices asks CUDA about each, so that the number is one of CUDA's devices."""
    ranged = isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "range"
    return ranged and any(_ASKS_EACH.search(module.text(statement)) for statement in loop.body)


_ON_CPU = re.compile(r"(^|_)(is|on)_cpu(_|$)")


def _is_cpu_test(test: ast.expr) -> bool:
    """Whether a test holds on the CPU alone: ``x.device.type == "cpu"``, ``is_cpu``."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_cpu_test(value) for value in test.values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return (
            isinstance(test.left, ast.Attribute) and test.left.attr == "type" and string(test.comparators[0]) == "cpu"
        )
    return (
        isinstance(test, ast.Name | ast.Attribute)
        and _ON_CPU.search((dotted(test) or "").rpartition(".")[2]) is not None
    )


def _not_elsewhere(module: Module, test: ast.expr) -> bool:
    return is_no_cuda_test(module, test) or only_cpu_or_cuda(test, False)


def _after_exit(module: Module, parent: ast.AST, child: ast.AST) -> bool:
    for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and child in block:
            exit_ = _first_exit(module, block)
            return exit_ is not None and exit_ < block.index(child)
    return False


def _first_exit(module: Module, block: list[ast.stmt]) -> int | None:
    """Place in a block of the first statement after which CUDA is certain; found once a block."""
    key = (_first_exit, id(block))
    if key not in module.facts:
        places = (index for index, statement in enumerate(block) if _exits_without_cuda(module, statement))
        module.facts[key] = next(places, None)
    return module.facts[key]  # type: ignore[return-value]


def _exits_without_cuda(module: Module, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return is_cuda_test(module, statement.test)
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and is_no_cuda_test(module, statement.test)
        and leaves(statement.body[-1])
    )


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement ends its block: return, raise, continue, break or an exit call."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return dotted(statement.value.func) in _EXITS
    return isinstance(statement, _LEAVES)


_SKIP = re.compile(r"(?i)skip_?(if|unless)|require")


def _skipped_without_cuda(module: Module, holder: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    for decorator in holder.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name is not None and _SKIP.search(name) and re.search(r"(?i)cuda|gpu", module.text(decorator)):
            return True
    return False
