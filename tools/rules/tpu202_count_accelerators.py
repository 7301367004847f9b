"""TPU202: devices counted by asking for CUDA alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_calls import calls
from tools.code.device_tests import needs_cuda
from tools.code.edits import Fix
from tools.code.literals import cuda_moves, device_literals
from tools.code.module import Module, string
from tools.code.rewrite import off_cuda, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DATA_PARALLEL = re.compile(r"(?<!Distributed)DataParallel\b|\bdata_parallel\b")
_COUNT = "torch.accelerator.device_count"
_EACH = (
    "CUDA is asked about each of these devices; decide what is done for a device of another kind, then count those too"
)
_REFUSES = (
    "the program stops where CUDA has too few devices; ask torch.accelerator, or the processes that torchrun started"
)
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


class CountAccelerators(PythonRule):
    """``torch.cuda.device_count()`` is 0 on any other accelerator; ``torch.accelerator.device_count()`` counts all kinds.

    A divisor becomes ``max(1, ...)``, so that a machine without accelerators gets no ZeroDivisionError. A count that
    decides about ``DataParallel`` stays, because only CUDA replicates a module in one process. Under torchrun the number
    of processes on a host is ``LOCAL_WORLD_SIZE``, not a count of devices.

    Not covered: how many processes a launcher starts (family D).
    """

    ID = "TPU202"
    NAME = "count-accelerators"
    FAMILY = "B"
    MESSAGE = "torch.cuda.device_count() is 0 on any other accelerator"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "device_count")
    REQUIRES = ("cuda",)
    COVERS = ("B14", "B15")
    VALID = (
        "import torch\ndef num_cuda_devices():\n    return torch.cuda.device_count()\n",
        "import torch\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)\n",
        "import torch\nn = torch.cuda.device_count()\nif n > 1:\n    model = nn.DataParallel(model)\n",
        "import torch\nif torch.cuda.is_available():\n    n = torch.cuda.device_count()\n",
        "import torch\nn = torch.accelerator.device_count()\n",
        "import torch\nprint(torch.cuda.device_count() > 1)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nworld = torch.cuda.device_count()\n",
            "import torch\nworld = torch.accelerator.device_count()\n",
        ),
        Invalid(
            "import os, torch\nworkers = os.cpu_count() // torch.cuda.device_count()\n",
            "import os, torch\nworkers = os.cpu_count() // max(1, torch.accelerator.device_count())\n",
        ),
        Invalid(
            "import torch\nif torch.cuda.device_count() > 0:\n    device = 'cuda'\n",
            "import torch\nif torch.accelerator.device_count() > 0:\n    device = 'cuda'\n",
        ),
        Invalid(
            "import torch\nfor i in range(torch.cuda.device_count()):\n    print(torch.cuda.mem_get_info(i))\n", None
        ),
        Invalid(
            "import torch\nif rank + 1 > torch.cuda.device_count():\n    raise ValueError('not enough GPUs')\n", None
        ),
        Invalid("import torch\nsettings = {'trialGpuNumber': torch.cuda.device_count()}\n", None),
        Invalid("import torch\nnames = [f'cuda:{i}' for i in range(torch.cuda.device_count())]\n", None),
        Invalid(
            "import os, torch\nos.environ['CUDA_VISIBLE_DEVICES'] = ','.join(str(i) for i in range(torch.cuda.device_count()))\n",
            None,
        ),
        Invalid(
            "from torch.cuda import device_count\nlocal = rank % device_count()\n",
            "import torch\nlocal = rank % max(1, torch.accelerator.device_count())\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields counts that are used for anything but deciding about CUDA-only code."""
        counts = list(calls(module, {"device_count"}))
        replicated = bool(counts) and bool(_DATA_PARALLEL.search(module.source.text))
        for call, _ in counts:
            divisor = _divides(module, call)
            if not divisor and (replicated or _tests_cuda(module, call)):
                if _refuses(module, call):
                    yield Match(*module.span(call), grade=Grade.ADVICE, note=_REFUSES)
                continue
            if _asks_cuda_about_each(module, call):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_EACH)
                continue
            if _for_scheduler(module, call):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_SCHEDULED)
                continue
            text, edits = off_cuda(module, call, f"{spell(module, _COUNT)}()")
            edit = module.replace(call, f"max(1, {text})" if divisor else text)
            yield Match(*module.span(call), fix=Fix((edit, *edits)))


def _asks_cuda_about_each(module: Module, call: ast.Call) -> bool:
    """Whether CUDA is asked about each device that is counted, or the function is there to count CUDA's."""
    child: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.For) and child is parent.iter and any("cuda" in module.text(s) for s in parent.body):
            return True
        if isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp) and "cuda" in module.text(parent.elt):
            return True
        if isinstance(parent, ast.stmt | ast.Dict) and "CUDA_VISIBLE_DEVICES" in module.text(parent):
            return True
        if isinstance(parent, ast.FunctionDef):
            return "cuda" in parent.name.lower() or needs_cuda(module, [parent])
        child = parent
    return False


_SCHEDULED = "says how many GPUs another program may take, which counts NVIDIA's; ask it for TPUs in its own way"


def _for_scheduler(module: Module, call: ast.Call) -> bool:
    """Whether the count is an entry about GPUs in a table of settings, such as NNI's or Ray's."""
    table = module.parent(call)
    if not isinstance(table, ast.Dict):
        return False
    return any(
        v is call and re.search(r"(?i)gpu", string(k) or "") for k, v in zip(table.keys, table.values, strict=True) if k
    )


def _refuses(module: Module, call: ast.Call) -> bool:
    """Whether the program stops where too few devices are counted."""
    holder = next((a for a in module.ancestors(call) if isinstance(a, ast.If)), None)
    return (
        holder is not None and call in set(ast.walk(holder.test)) and any(isinstance(s, ast.Raise) for s in holder.body)
    )


def _divides(module: Module, call: ast.Call) -> bool:
    parent = module.parent(call)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, _DIVISIONS) and parent.right is call


def _tests_cuda(module: Module, call: ast.Call) -> bool:
    """Whether the count is compared or tested, with nothing under the test that places tensors."""
    parent = module.parent(call)
    if not isinstance(parent, ast.Compare | ast.If | ast.IfExp | ast.BoolOp | ast.UnaryOp):
        return False
    holder = next((a for a in module.ancestors(call) if isinstance(a, ast.If | ast.IfExp)), None)
    if holder is None:
        return True
    region = set(ast.walk(holder))
    return not any(place in region for place in (*device_literals(module), *cuda_moves(module)))
