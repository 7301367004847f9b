"""TPU111: lists of device types without the accelerator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import dotted, leaves, on_cuda_path
from tools.code.literals import DEVICE_WORD, device_names
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_CHECK = (
    "a device type that is not in the list is refused or takes the CPU's way; add the accelerator where it is meant"
)


class WidenDeviceList(PythonRule):
    """``device.type in ("cuda", "mtia")`` sends every other accelerator down the CPU's branch without a word.

    Where the list holds accelerators only and the type of a device is compared, ``not in ("cpu", "meta")`` says the same for all of them;
    the fix is unsafe, because the list may have been meant as it is. A list with the CPU in it, where the program
    stops for anything else, is left to a person.

    Lists of the devices that a kernel exists for, or whose kernels are not deterministic, are left. Not covered: lists kept in a variable.
    """

    ID = "TPU111"
    NAME = "widen-device-list"
    FAMILY = "A"
    GRADE = Grade.ADVICE
    MESSAGE = "a list of device types leaves out other accelerators"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A14",)
    VALID = (
        "if device.type in ('cuda', 'tpu'):\n    f()\n",
        "if name in ('cuda', 'opencl'):\n    f()\n",
        "scaler = GradScaler(enabled=device_type in ('cpu', 'cuda'))\n",
        "import torch\ndef _use_triton(device):\n    return HAS and device.type in ('cuda', 'xpu')\n",
        "import torch\nif grad.device.type in ('cuda', 'mps'):\n    torch._prims_common.alert_not_deterministic('k')\n",
        "def fast(x):\n    if x.device.type not in ('cpu', 'cuda'):\n        return False\n    return True\n",
        "def f(device):\n    if device not in ['cuda', 'xpu']:\n        raise ValueError('profiling is for CUDA and XPU')\n",
        "def _supports_loss_kernel(x):\n    good = x.device.type in ('cuda', 'xpu') and x.ndim > 1\n    return good\n",
        "if color in ('red', 'blue', 'cuda'):\n    f()\n",
    )
    INVALID = (
        Invalid(
            "if x.device.type in ('cuda', 'mtia'):\n    f()\n",
            "if x.device.type not in ('cpu', 'meta'):\n    f()\n",
            unsafe=True,
        ),
        Invalid(
            'hbm = dev.type not in {"cuda", "xpu"} and big\n',
            'hbm = dev.type in ("cpu", "meta") and big\n',
            unsafe=True,
        ),
        Invalid("assert device in ['cpu', 'cuda']\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields membership tests of a device in a list of type names."""
        for test in module.nodes(ast.Compare):
            if len(test.ops) != 1 or not isinstance(test.ops[0], ast.In | ast.NotIn):
                continue
            names = device_names(test.comparators[0])
            if names is None or "cuda" not in names or "tpu" in names or on_cuda_path(module, test):
                continue
            if not _is_device(test.left) or _of_kernels(module, test):
                continue
            is_type = isinstance(test.left, ast.Attribute) and test.left.attr == "type"
            if is_type and not names & {"cpu", "meta"}:
                quote = module.text(next(n for n in ast.walk(test.comparators[0]) if isinstance(n, ast.Constant)))[-1]
                sign = "not in" if isinstance(test.ops[0], ast.In) else "in"
                hosts = f"({quote}cpu{quote}, {quote}meta{quote})"
                edit = module.replace(test, f"{module.text(test.left)} {sign} {hosts}")
                yield Match(*module.span(test), fix=Fix((edit,)), grade=Grade.UNSAFE)
            elif "cpu" not in names or _refuses(module, test):
                yield Match(*module.span(test), note=_CHECK)


def _refuses(module: Module, test: ast.Compare) -> bool:
    """Whether the program stops for a device that is not in the list."""
    statement = module.statement(test)
    if isinstance(statement, ast.If):
        last = statement.body[-1]
        return leaves(last) and not (isinstance(last, ast.Return) and isinstance(last.value, ast.Constant | None))
    return isinstance(statement, ast.Assert)


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return dotted(node) is not None
    name = dotted(node)
    return name is not None and bool(DEVICE_WORD.search(name.rpartition(".")[2]))


_KERNELS = re.compile(r"(?i)triton|kernel|flash|xformers|sage|cudnn|cutlass|alert_not_deterministic|nccl|int8|fp8|bnb")

_SOURCES = re.compile(r"(?i)triton|xformers|flash_?attn|cutlass|nvidia_?smi|memory_stats|profiling")


def _of_kernels(module: Module, test: ast.Compare) -> bool:
    """Whether the test, what it guards at once, or the function it is the answer of, is about kernels."""
    child: ast.AST = test
    for parent in module.ancestors(test):
        if isinstance(parent, ast.If | ast.IfExp):
            body = parent.body if isinstance(parent, ast.If) else [parent.body]
            if any(isinstance(s, ast.Raise) and _SOURCES.search(module.text(s)) for s in body):
                return True
            told = [module.text(parent.test), *(module.text(s).partition("\n")[0] for s in body)]
            return child is parent.test and any(_KERNELS.search(text) for text in told)
        if isinstance(parent, ast.stmt):
            function = module.function(parent)
            if function is not None and _SOURCES.search(module.text(function)):
                return True
            if _KERNELS.search(getattr(function, "name", "")):
                return True
            return _KERNELS.search(module.text(parent)) is not None
        child = parent
    return False
