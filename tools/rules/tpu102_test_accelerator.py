"""TPU102: a test or flag for CUDA that decides where tensors go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.edits import Fix
from tools.guards import availability_calls, dotted, is_cuda_test, is_no_cuda_test, leaves, on_cuda_path
from tools.literals import placements
from tools.module import Module
from tools.rewrite import AVAILABLE, import_edits, spell
from tools.rules.base import Invalid, Match, PythonRule


class TestAccelerator(PythonRule):
    """``if torch.cuda.is_available():`` around code that moves things to the device, or a flag used that way.

    The test becomes ``torch.accelerator.is_available()``; what stands under it is then looked at by the other rules, which
    keep calls that are for CUDA alone behind a test of their own. Tests that guard nothing but CUDA-only calls (cuDNN
    flags, memory statistics, CUDA graphs) are right as they are and stay.

    A program that refuses to start without CUDA (``assert torch.cuda.is_available()``, ``if not ...: raise``) asks for an
    accelerator instead.

    Not covered: flags that only the command line sets (they decide nothing about the kind of device), and flags handed to
    other files under another name.
    """

    ID = "TPU102"
    NAME = "test-accelerator"
    FAMILY = "A"
    MESSAGE = "a test for CUDA decides where tensors go, so other accelerators are passed over"
    TRIGGERS = ("cuda", "is_available")
    REQUIRES = ("cuda",)
    COVERS = ("A9", "A20")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True\n",
        "import torch\nif torch.accelerator.is_available():\n    model.to(device)\n",
        "import torch\nprint(torch.cuda.is_available())\n",
        "import torch\nuse_cuda = torch.cuda.is_available()\nif use_cuda:\n    torch.cuda.manual_seed(1)\n",
    )
    INVALID = (
        Invalid(
            "import torch\ndevice = 'cpu'\nif torch.cuda.is_available():\n    device = 'cuda'\n",
            "import torch\ndevice = 'cpu'\nif torch.accelerator.is_available():\n    device = 'cuda'\n",
        ),
        Invalid(
            "import torch\nuse_cuda = not args.no_cuda and torch.cuda.is_available()\n"
            "device = torch.device('cuda' if use_cuda else 'cpu')\n",
            "import torch\nuse_cuda = not args.no_cuda and torch.accelerator.is_available()\n"
            "device = torch.device('cuda' if use_cuda else 'cpu')\n",
        ),
        Invalid(
            "import torch\nargs.cuda = args.cuda and torch.cuda.is_available()\nif args.cuda:\n    model.cuda()\n",
            "import torch\nargs.cuda = args.cuda and torch.accelerator.is_available()\nif args.cuda:\n    model.cuda()\n",
        ),
        Invalid(
            "import torch\nassert torch.cuda.is_available(), 'needs a GPU'\nmodel.cuda()\n",
            "import torch\nassert torch.accelerator.is_available(), 'needs a GPU'\nmodel.cuda()\n",
        ),
        Invalid(
            "import torch\nif not torch.cuda.is_available():\n    raise SystemExit('no GPU')\nmodel.cuda()\n",
            "import torch\nif not torch.accelerator.is_available():\n    raise SystemExit('no GPU')\nmodel.cuda()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields each statement whose ``torch.cuda.is_available`` decides about placement."""
        places = placements(module)
        for call in module.calls("torch.cuda.is_available"):
            if on_cuda_path(module, module.statement(call)) or not self._decides(module, call, places):
                continue
            start, end = module.span(call)
            edit = module.replace(call.func, spell(module, AVAILABLE))
            yield Match(start, end, fix=Fix((edit, *import_edits(module))))

    def _decides(self, module: Module, call: ast.Call, places: list[ast.expr]) -> bool:
        statement = module.statement(call)
        if isinstance(statement, ast.Assert):
            return is_cuda_test(module, statement.test, flags=False) and bool(places)
        if isinstance(statement, ast.If) and call in availability_calls(module, statement.test):
            if is_no_cuda_test(module, statement.test) and not statement.orelse:
                return bool(places) and leaves(statement.body[-1])
            region = statement.orelse if is_no_cuda_test(module, statement.test) else statement.body
            return _within(module, region, places)
        if isinstance(statement, ast.Assign) and is_cuda_test(module, statement.value, flags=False):
            names = {name for target in statement.targets if (name := dotted(target))}
            return any(_within(module, region, places) for region in _regions(module, names))
        return False


def _regions(module: Module, names: set[str]) -> Iterator[list[ast.AST]]:
    """What runs where one of the named flags holds."""
    branches: list[ast.If | ast.IfExp] = [*module.nodes(ast.If), *module.nodes(ast.IfExp)]
    for branch in branches:
        operands = branch.test.values if isinstance(branch.test, ast.BoolOp) else [branch.test]
        for operand in operands:
            if dotted(operand) in names:
                yield [*branch.body] if isinstance(branch, ast.If) else [branch.body]
            elif isinstance(operand, ast.UnaryOp) and dotted(operand.operand) in names:
                yield [*branch.orelse] if isinstance(branch, ast.If) else [branch.orelse]


def _within(module: Module, region: list[ast.stmt] | list[ast.AST], places: list[ast.expr]) -> bool:
    holders = set(region)
    return any(place in holders or any(a in holders for a in module.ancestors(place)) for place in places)
