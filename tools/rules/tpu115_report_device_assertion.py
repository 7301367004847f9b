"""TPU115: code that refuses any device but CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import dotted, is_cuda_test, is_named_test, is_no_cuda_test, on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = (
    "if what follows needs CUDA (a kernel, a library), give other devices a way of their own; "
    'if it does not, ask for `!= "cpu"` or drop the check'
)


class ReportDeviceAssertion(PythonRule):
    """``assert device.type == "cuda"`` and ``if not x.is_cuda: raise`` stop every other accelerator.

    Whether the code behind them needs CUDA cannot be seen here, so what follows is taken for CUDA-only code and gets no
    other finding.

    Not covered: programs that refuse to start without CUDA (``assert torch.cuda.is_available()``), which TPU102 opens.
    """

    ID = "TPU115"
    NAME = "report-device-assertion"
    FAMILY = "A"
    GRADE = Grade.ADVICE
    MESSAGE = "this refuses every device but CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A11", "A21")
    VALID = (
        "import torch\nassert torch.cuda.is_available()\n",
        "assert device.type != 'cpu'\n",
        "def setup(self):\n    if not isinstance(self.accelerator, CUDAAccelerator):\n        raise RuntimeError('DeepSpeed needs CUDA')\n",
        "if device.type != 'cuda':\n    return_early()\n",
        "class Conv(torch.autograd.Function):\n    def forward(ctx, x):\n        if not x.is_cuda:\n            raise NotImplementedError\n",
    )
    INVALID = (
        Invalid("assert device.type == 'cuda', 'needs CUDA'\n", None),
        Invalid("def f(x):\n    if not x.is_cuda:\n        raise ValueError('CUDA only')\n", None),
        Invalid("import torch\nassert torch.cuda.is_available() and torch.cuda.device_count() >= int(device)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields assertions and raises that hold for CUDA alone, off the CUDA-only path."""
        for statement in module.nodes(ast.Assert):
            if is_cuda_test(module, statement.test, flags=False) and not _is_start(module, statement.test):
                if not on_cuda_path(module, statement):
                    yield Match(*module.span(statement.test), note=_NOTE)
        for branch in module.nodes(ast.If):
            if branch.orelse or not isinstance(branch.body[-1], ast.Raise) or _is_start(module, branch.test):
                continue
            if _asks_class(module, branch.test) or _in_kernel(module, branch):
                continue
            if is_no_cuda_test(module, branch.test) and not on_cuda_path(module, branch):
                yield Match(*module.span(branch.test), note=_NOTE)


def _in_kernel(module: Module, branch: ast.If) -> bool:
    """Whether it is in an autograd function, which is written around a kernel that it names."""
    holders = (a for a in module.ancestors(branch) if isinstance(a, ast.ClassDef))
    return any((dotted(base) or "").rpartition(".")[2] == "Function" for holder in holders for base in holder.bases)


def _asks_class(module: Module, test: ast.expr) -> bool:
    """Whether a test is for a framework's class for CUDA: a strategy that needs it says so, and rightly."""
    call = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(call, ast.Call) and dotted(call.func) == "isinstance" and is_named_test(module, call)


def _is_start(module: Module, test: ast.expr) -> bool:
    """Whether the test is the bare question for CUDA, or a flag that holds its answer."""
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.Call):
        return module.qualify(test.func) == "torch.cuda.is_available"
    return isinstance(test, ast.Name)
