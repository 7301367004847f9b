"""TPU102: a test or flag for CUDA that decides where tensors go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.device_tests import needs_cuda
from tools.code.edits import Fix
from tools.code.guards import (
    availability_calls,
    dotted,
    is_cuda_test,
    is_named_test,
    is_no_cuda_test,
    leaves,
    on_cuda_path,
)
from tools.code.literals import cuda_moves, placements
from tools.code.module import Module, fact, string
from tools.code.rewrite import ask_accelerator
from tools.findings import Grade
from tools.project import Trait
from tools.rules.base import Invalid, Match, PythonRule

_ONLY_CUDA = (
    "what this test guards also needs CUDA itself (its own API, or a library for it); "
    "part the two and let other accelerators into the rest"
)
_NAMED = (
    "asks for CUDA through a function of another name; ask torch.accelerator.is_available() where placement is decided"
)
_OWN = "a class of this repository has a cuda() method of its own, which a call under the test may mean"
_SKIPS = re.compile(r"(?i)\bskip")
_STARTS = re.compile(r"main|train|run|setup|init|__init__")


class TestAccelerator(PythonRule):
    """``if torch.cuda.is_available():`` around code that moves things to the device, or a flag used that way.

    The test becomes ``torch.accelerator.is_available()``; what stands under it is then looked at by the other rules, which
    keep calls that are for CUDA alone behind a test of their own. Tests that guard nothing but CUDA-only calls (cuDNN
    flags, memory statistics, CUDA graphs) are right as they are and stay.

    A program that refuses to start without CUDA (``assert torch.cuda.is_available()``, ``if not ...: raise``) asks for an
    accelerator instead.

    So does one whose ``else`` stops the program. A refusal to use a library for CUDA is right as it is.

    Not covered: flags that only the command line sets (they decide nothing about the kind of device), and flags handed to
    other files under another name.
    """

    ID = "TPU102"
    NAME = "test-accelerator"
    FAMILY = "A"
    MESSAGE = "a test for CUDA decides where tensors go, so other accelerators are passed over"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "is_available", "CUDAAccelerator")
    REQUIRES = ("cuda",)
    COVERS = ("A9", "A20")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True\n",
        "import torch\nif torch.accelerator.is_available():\n    model.to(device)\n",
        "import torch\nprint(torch.cuda.is_available())\n",
        "import torch\nuse_cuda = torch.cuda.is_available()\nif use_cuda:\n    torch.cuda.manual_seed(1)\n",
        "import torch\ndef check(device):\n    if not torch.cuda.is_available():\n        return\n"
        "    warn(torch.cuda.get_device_name(device))\n\ndef move(x):\n    return x.cuda()\n",
        "import unittest, torch\ndef test():\n    if not torch.cuda.is_available():\n"
        "        raise unittest.SkipTest('test requires CUDA')\n    f().cuda()\n",
        "import torch\ndef load():\n    assert torch.cuda.is_available(), 'Megatron requires CUDA.'\n    return megatron()\n\n"
        "def move(x):\n    return x.cuda()\n",
        "import torch\nif fast:\n    if not torch.cuda.is_available():\n        raise ValueError('xformers is only for GPU')\n"
        "    attention(torch.ones(2, device='cuda'))\n",
        "import torch\ndef convert_to_trt(model):\n    if not torch.cuda.is_available():\n        raise Exception('no GPU')\n"
        "    model.to(torch.device('cuda'))\n",
        "def choose():\n    if MPSAccelerator.is_available():\n        return 'mps'\n    if CUDAAccelerator.is_available():\n"
        "        return 'cuda'\n    return 'cpu'\n",
        "import torch\nif is_npu_available():\n    d = 'npu'\nelif is_cuda_available():\n    device = 'cuda'\n",
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
        Invalid(
            "import torch\ndef f(flash):\n    if not torch.cuda.is_available() or not flash:\n        return\n"
            "    p = torch.cuda.get_device_properties(torch.device('cuda'))\n",
            None,
        ),
        Invalid(
            "import torch\nif torch.cuda.is_available():\n    device = torch.device('cuda')\n"
            "    capability = torch.cuda.get_device_capability(device)\n",
            None,
        ),
        Invalid(
            "import torch\ndevice = 'cuda'\nif not torch.cuda.is_available():\n    print('no GPU')\n    device = 'cpu'\n",
            "import torch\ndevice = 'cuda'\nif not torch.accelerator.is_available():\n    print('no GPU')\n    device = 'cpu'\n",
        ),
        Invalid(
            "import torch\nif torch.cuda.is_available():\n    model = torch.nn.parallel.DistributedDataParallel(model)\n",
            "import torch\nif torch.accelerator.is_available():\n    model = torch.nn.parallel.DistributedDataParallel(model)\n",
        ),
        Invalid(
            "import sys, torch\ndef init(args):\n    if args.rank:\n        pass\n    elif torch.cuda.is_available():\n        args.gpu = 0\n"
            "    else:\n        print('no GPU')\n        sys.exit(1)\n\ndef move(x):\n    return x.cuda()\n",
            "import sys, torch\ndef init(args):\n    if args.rank:\n        pass\n    elif torch.accelerator.is_available():\n        args.gpu = 0\n"
            "    else:\n        print('no GPU')\n        sys.exit(1)\n\ndef move(x):\n    return x.cuda()\n",
        ),
        Invalid("import torch\nif is_torch_cuda_available():\n    model.cuda()\n", None),
        Invalid("import torch\ndevice = 'cuda' if has_cuda() else 'cpu'\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields each statement whose ``torch.cuda.is_available`` decides about placement."""
        yield from questions(module)


@fact
def questions(module: Module) -> list[Match]:
    """What the rule finds in a file."""
    found: list[Match] = []
    places = placements(module)
    moves: list[ast.expr] = [*cuda_moves(module)]
    for call in module.calls("torch.cuda.is_available"):
        if on_cuda_path(module, module.statement(call)):
            continue
        regions = list(_guarded(module, call))
        guarded = [near for far, near in regions if _within(module, far, places) or _wraps(module, near)]
        if guarded and _refuses_library(module, call):
            continue
        if guarded and not any(needs_cuda(module, region) for region in guarded):
            moved = any(_within(module, r, moves) for r in guarded) and module.project.has(Trait.OWN_CUDA)
            grade, note = (Grade.UNSAFE, _OWN) if moved else (None, None)
            found.append(
                Match(*module.span(call), fix=Fix(tuple(ask_accelerator(module, call))), grade=grade, note=note)
            )
        elif guarded:
            found.append(Match(*module.span(call), grade=Grade.ADVICE, note=_ONLY_CUDA))
    for call in module.nodes(ast.Call):
        if is_named_test(module, call) and not on_cuda_path(module, call) and not _among_classes(module, call):
            if any(_within(module, r, places) for r in _named(module, call)):
                found.append(Match(*module.span(call), grade=Grade.ADVICE, note=_NAMED))
    return found


def _guarded(module: Module, call: ast.Call) -> Iterator[tuple[list[ast.AST], list[ast.AST]]]:
    """What runs only where a call of ``torch.cuda.is_available`` says yes: all that may, and what stands there itself."""
    statement = module.statement(call)
    if isinstance(statement, ast.Assert) and is_cuda_test(module, statement.test, flags=False):
        yield _rest(module, statement)
    elif isinstance(statement, ast.If) and call in availability_calls(module, statement.test):
        region: list[ast.AST] = [*statement.body]
        if not is_no_cuda_test(module, statement.test):
            yield region, region
            if (
                statement.orelse
                and _stops(statement.orelse[-1])
                and not _SKIPS.search(module.text(statement.orelse[-1]))
            ):
                yield _rest(module, statement)
        elif statement.orelse:
            yield [*statement.orelse], [*statement.orelse]
        elif given := _given_up(module, statement):
            yield given, given
        elif leaves(statement.body[-1]) and not _SKIPS.search(module.text(statement.body[-1])):
            yield _rest(module, statement)
    elif isinstance(statement, ast.Assign) and is_cuda_test(module, statement.value, flags=False):
        names = {name for target in statement.targets if (name := dotted(target))}
        yield from ((region, region) for region in _regions(module, names))


def _given_up(module: Module, branch: ast.If) -> list[ast.AST]:
    """Devices assigned above a branch that falls back to the CPU: ``device = "cuda"``, then ``if not ...: device = "cpu"``."""
    fallen = {
        n for s in branch.body if isinstance(s, ast.Assign) and _is_cpu(s.value) for t in s.targets if (n := dotted(t))
    }
    block = getattr(module.parent(branch), "body", [])
    before = block[: block.index(branch)] if fallen and branch in block else []
    return [s for s in before if isinstance(s, ast.Assign) and any(dotted(t) in fallen for t in s.targets)]


def _is_cpu(value: ast.expr) -> bool:
    return string(value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value) == "cpu"


def _stops(statement: ast.stmt) -> bool:
    """Whether a statement ends the program: a raise or an exit."""
    return isinstance(statement, ast.Raise) or (isinstance(statement, ast.Expr) and leaves(statement))


def _wraps(module: Module, region: list[ast.AST]) -> bool:
    """Whether a region wraps a model for several processes, which any accelerator does."""
    calls = (n for holder in region for n in ast.walk(holder) if isinstance(n, ast.Call))
    return any((module.names.qualify(c.func) or "").endswith(".DistributedDataParallel") for c in calls)


def _refuses_library(module: Module, call: ast.Call) -> bool:
    """Whether the test is there to say that a library for CUDA cannot be used, which is so."""
    statement = module.statement(call)
    refusal = statement.body[-1] if isinstance(statement, ast.If) else None
    if not isinstance(refusal, ast.Raise):
        return False
    named = re.search(r"(?i)trt|tensorrt|xformers", getattr(module.function(statement), "name", ""))
    return named is not None or needs_cuda(module, [refusal])


def _rest(module: Module, statement: ast.stmt) -> tuple[list[ast.AST], list[ast.AST]]:
    """What follows a statement in its block, with itself; where a program starts, the whole file may run after it."""
    holder, function = module.parent(statement), module.function(statement)
    block = next(
        (b for n in ("body", "orelse", "finalbody") if statement in (b := getattr(holder, n, []))), [statement]
    )
    rest: list[ast.AST] = [*block[block.index(statement) :]]
    starts = function is None or (isinstance(function, ast.FunctionDef) and _STARTS.match(function.name) is not None)
    return ([*module.tree.body] if starts else rest), rest


_ASKS_CLASS = re.compile(r"\b[A-Z]\w+\.is_available\(\)")


def _among_classes(module: Module, call: ast.Call) -> bool:
    """Whether a framework asks its classes for devices one after the other, and names one of them."""
    function = module.function(call)
    return function is not None and len(_ASKS_CLASS.findall(module.text(function))) > 1


def _named(module: Module, call: ast.Call) -> Iterator[list[ast.AST]]:
    """What stands under a test for CUDA by another name, where no other accelerator has a branch beside it."""
    holder = module.statement(call)
    for parent in module.ancestors(call):
        if isinstance(parent, ast.IfExp) and call in ast.walk(parent.test):
            yield [parent.body]
            return
    if isinstance(holder, ast.If) and call in ast.walk(holder.test):
        chained = isinstance(module.parent(holder), ast.If) and holder in module.parent(holder).orelse  # type: ignore[union-attr]
        if not chained and not any(isinstance(other, ast.If) for other in holder.orelse):
            yield [*holder.body]


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
