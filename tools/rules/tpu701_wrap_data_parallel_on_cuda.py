"""TPU701: ``nn.DataParallel`` off CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, is_on_cpu_or_cuda, on_cpu_or_cuda
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import guard, parenthesised
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

NAMES = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel")
_OF_CLASS = "build objects of this class on CUDA only, and use the model as it is elsewhere"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class WrapDataParallelOnCuda(PythonRule):
    """``nn.DataParallel`` drives several CUDA devices from one process; on a TPU its first call raises.

    The wrapper stays on CUDA, and on the CPU, where it does nothing but put ``module.`` before the names in a state dict.
    Elsewhere the model is used as it is; several TPU chips need one process each and ``DistributedDataParallel``.

    Checkpoints written by the wrapped model have the ``module.`` prefix and need it stripped before they are loaded on a
    TPU. Accesses through ``.module`` are TPU702's.
    """

    ID = "TPU701"
    NAME = "wrap-data-parallel-on-cuda"
    FAMILY = "P"
    MESSAGE = "DataParallel is for several CUDA devices in one process and raises on a TPU"
    WHOLE_WORDS = True
    TRIGGERS = ("DataParallel",)
    COVERS = ("P1", "P2")
    VALID = (
        "import torch\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)\n",
        "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\n",
        "import torch\nif device == 'cuda':\n    net = torch.nn.DataParallel(net)\n",
        "import torch\nassert isinstance(model, torch.nn.DataParallel)\n",
    )
    INVALID = (
        Invalid("import torch\n\nclass Parallel(torch.nn.DataParallel):\n    pass\n\nmodel = Parallel(net)\n", None),
        Invalid(
            "import torch\nimport torch.nn as nn\n\nmodel = nn.DataParallel(model, device_ids=[0, 1])\n",
            f"import torch\nimport torch.nn as nn\n\n{_TOP}\n"
            'if DEVICE_TYPE in ("cpu", "cuda"):\n    model = nn.DataParallel(model, device_ids=[0, 1])\n',
        ),
        Invalid(
            "import torch\nfrom torch.nn import DataParallel\n\nnet = DataParallel(Net()).to(device)\n",
            f"import torch\nfrom torch.nn import DataParallel\n\n{_TOP}\n"
            'net = (DataParallel(Net()) if DEVICE_TYPE in ("cpu", "cuda") else Net()).to(device)\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields wrappings off the CUDA-only path."""
        for kind in module.nodes(ast.ClassDef):
            for base in kind.bases:
                if module.qualify(base) in NAMES:
                    yield Match(*module.span(base), grade=Grade.ADVICE, note=_OF_CLASS)
        for call in module.calls(*NAMES):
            if on_cuda_path(module, call) or _settled(module, call):
                continue
            start, end = module.span(call)
            inner = argument(call, "module", 0)
            if inner is None:
                yield Match(start, end, grade=Grade.ADVICE, note="wrap the model on CUDA only")
            else:
                yield Match(start, end, fix=_fix(module, call, inner))


def _fix(module: Module, call: ast.Call, inner: ast.expr) -> Fix:
    test, edits = on_cpu_or_cuda(module, call)
    statement = module.parent(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = dotted(statement.targets[0])
        if target is not None and target == dotted(inner):
            guarded = guard(module, [statement], test).get(statement)
            if guarded is not None:
                return Fix((*guarded.edits, *edits))
    text = f"{module.text(call)} if {test} else {module.text(inner)}"
    return Fix((module.replace(call, parenthesised(module, call, text)), *edits))


def _settled(module: Module, call: ast.Call) -> bool:
    return any(
        isinstance(parent, ast.If | ast.IfExp) and is_on_cpu_or_cuda(parent.test) for parent in module.ancestors(call)
    )
