"""TPU107: ``is_cuda`` asked to decide where things go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.device_tests import off_cpu, places, replicates
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import is_cuda_literal, legacy_type
from tools.code.module import Module, string
from tools.rules.base import Invalid, Match, PythonRule


class TestTensorDevice(PythonRule):
    """``if x.is_cuda: y = y.cuda()`` leaves ``y`` behind on any other accelerator.

    The test becomes ``x.device.type not in ("cpu", "meta")``, and ``"cuda" if x.is_cuda else "cpu"`` becomes ``x.device.type``. Tests that
    choose CUDA kernels, DataParallel or other CUDA-only code stay.

    Not covered: answers kept in an attribute or handed to other functions.
    """

    ID = "TPU107"
    NAME = "test-tensor-device"
    FAMILY = "A"
    MESSAGE = "is_cuda decides where things go, so they stay on the CPU on any other accelerator"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A14",)
    VALID = (
        "import torch\nif input.is_cuda and self.ngpu > 1:\n    output = nn.parallel.data_parallel(self.main, input)\n",
        "if x.is_cuda:\n    y = kernel.forward(x)\n",
        "assert x.is_cuda\n",
        "import torch\nt = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor\n",
        "if x.device.type != 'cpu':\n    y = y.cuda()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif x.is_cuda:\n    mask = mask.cuda()\n",
            "import torch\nif x.device.type not in ('cpu', 'meta'):\n    mask = mask.cuda()\n",
        ),
        Invalid(
            "import torch\ny = y if not x.is_cuda else y.cuda()\nif not x.is_cuda and fast:\n    f()\nelse:\n    y = y.cuda()\n",
            "import torch\ny = y if x.device.type in ('cpu', 'meta') else y.cuda()\n"
            "if x.device.type in ('cpu', 'meta') and fast:\n    f()\nelse:\n    y = y.cuda()\n",
            count=2,
        ),
        Invalid(
            "import torch\ndef f(x, mean):\n    if x.is_cuda:\n        return x - torch.cuda.FloatTensor(mean)\n    return x - torch.FloatTensor(mean)\n",
            "import torch\ndef f(x, mean):\n    if x.device.type not in ('cpu', 'meta'):\n        return x - torch.cuda.FloatTensor(mean)\n"
            "    return x - torch.FloatTensor(mean)\n",
        ),
        Invalid(
            'import torch\ndevice = torch.device("cuda" if x.is_cuda else "cpu")\n',
            "import torch\ndevice = torch.device(x.device.type)\n",
        ),
        Invalid(
            'import torch\nuse_cuda = next(m.parameters()).is_cuda\nx = x.cuda() if use_cuda else x\nname = "a"\n',
            'import torch\nuse_cuda = next(m.parameters()).device.type not in ("cpu", "meta")\nx = x.cuda() if use_cuda else x\nname = "a"\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields ``is_cuda`` attributes under whose truth something is moved to CUDA."""
        for node in module.nodes(ast.Attribute):
            if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load) or on_cuda_path(module, node):
                continue
            choice = module.parent(node)
            if isinstance(choice, ast.IfExp) and choice.test is node and _is_type(choice):
                edit = module.replace(choice, f"{module.text(node.value)}.device.type")
                yield Match(*module.span(choice), fix=Fix((edit,)))
            elif self._decides(module, node):
                kind = f"{module.text(node.value)}.device.type"
                yield Match(*module.span(node), fix=Fix((off_cpu(module, node, kind, _quote(module)),)))

    def _decides(self, module: Module, node: ast.Attribute) -> bool:
        holder = next((a for a in module.ancestors(node) if isinstance(a, ast.If | ast.IfExp | ast.stmt)), None)
        if isinstance(holder, ast.If | ast.IfExp):
            region = _moved_in(module, holder, node)
            if (
                node not in ast.walk(holder.test)
                or replicates(module, region)
                or "data_parallel" in module.text(holder)
            ):
                return False
            whole = isinstance(holder, ast.If)
            return places(module, region) and (whole or not any(legacy_type(module, n) for n in region))
        if isinstance(holder, ast.Assign) and holder.value is node:
            flags = {name for target in holder.targets if (name := dotted(target))}
            return any(places(module, region) for region in _branches(module, flags))
        return False


def _moved_in(module: Module, holder: ast.If | ast.IfExp, node: ast.Attribute) -> list[ast.AST]:
    """What stands under the test, and for ``not x.is_cuda`` under its opposite too."""
    body: list[ast.AST] = [*holder.body] if isinstance(holder, ast.If) else [holder.body]
    if isinstance(module.parent(node), ast.UnaryOp):
        body += [*holder.orelse] if isinstance(holder, ast.If) else [holder.orelse]
    return body


def _branches(module: Module, flags: set[str]) -> Iterator[list[ast.AST]]:
    for branch in module.nodes(ast.If):
        if dotted(branch.test) in flags:
            yield [*branch.body]
    for choice in module.nodes(ast.IfExp):
        if dotted(choice.test) in flags:
            yield [choice.body]


def _is_type(choice: ast.IfExp) -> bool:
    return is_cuda_literal(choice.body) and string(choice.body) == "cuda" and string(choice.orelse) == "cpu"


def _quote(module: Module) -> str:
    """The kind of quotes the file uses more."""
    text = module.source.text
    return '"' if text.count('"') >= text.count("'") and '"' in text else "'"
