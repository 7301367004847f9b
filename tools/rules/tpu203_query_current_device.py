"""TPU203: the index of the current CUDA device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import calls, guarded, statement_of
from tools.code.device_tests import needs_cuda
from tools.code.edits import Fix
from tools.code.module import Module
from tools.code.rewrite import off_cuda, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_INDEX = "torch.accelerator.current_device_index"


_FOR_CUDA = "the index goes into what only CUDA has; branch on torch.cuda.is_available() around both"


class QueryCurrentDevice(PythonRule):
    """``torch.cuda.current_device()`` fails without CUDA.

    ``torch.accelerator.current_device_index()`` is the same index for any accelerator, and PyTorch takes a bare index for
    the accelerator's device of that number.

    Not covered: an index that is put into a device string by other code than the expression around it.
    """

    ID = "TPU203"
    NAME = "query-current-device"
    FAMILY = "B"
    MESSAGE = "torch.cuda.current_device() fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "current_device")
    REQUIRES = ("cuda",)
    COVERS = ("B2",)
    VALID = (
        "import torch\ntorch.distributed.barrier(device_ids=[torch.cuda.current_device()])\n",
        "import torch\nindex = torch.accelerator.current_device_index()\n",
        "import torch\nif torch.cuda.is_available():\n    print(torch.cuda.current_device())\n",
    )
    INVALID = (
        Invalid(
            "import torch\nmodel = FSDP(model, device_id=torch.cuda.current_device())\n",
            "import torch\nmodel = FSDP(model, device_id=torch.accelerator.current_device_index())\n",
        ),
        Invalid(
            "import torch as t\nprint(f'on {t.cuda.current_device()}')\n",
            "import torch as t\nprint(f'on {t.accelerator.current_device_index()}')\n",
        ),
        Invalid(
            "import torch\ndef state():\n    i = torch.cuda.current_device()\n    return torch.cuda.default_generators[i]\n",
            None,
        ),
        Invalid("import torch\nname = f'cuda:{torch.cuda.current_device()}'\n", None),
        Invalid(
            "import torch\ntorch.cuda.current_device()\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.current_device()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of ``current_device``; one whose result is thrown away only starts CUDA."""
        for call, _ in calls(module, {"current_device"}):
            if _is_index_of_ddp(module, call):
                continue  # TPU402 keeps it for CUDA
            if _is_for_cuda(module, call):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_FOR_CUDA)
                continue
            statement = statement_of(module, call)
            if statement is not None:
                fix = guarded(module, [statement])[statement]
            else:
                arguments = module.source.text[module.span(call.func)[1] : module.span(call)[1]]
                text, edits = off_cuda(module, call, f"{spell(module, _INDEX)}{arguments}", (2, 8))
                fix = Fix((module.replace(call, text), *edits))
            yield Match(*module.span(call), fix=fix)


def _is_index_of_ddp(module: Module, call: ast.Call) -> bool:
    keywords = (a for a in module.ancestors(call) if isinstance(a, ast.keyword))
    return any(k.arg in ("device_ids", "output_device") for k in keywords)


def _is_for_cuda(module: Module, call: ast.Call) -> bool:
    """Whether the index is for a call of ``torch.cuda``, for a device written as CUDA's, or in code that needs CUDA."""
    for parent in module.ancestors(call):
        if isinstance(parent, ast.Call) and (module.qualify(parent.func) or "").startswith("torch.cuda."):
            return True
        if isinstance(parent, ast.JoinedStr | ast.BinOp) and "cuda:" in module.text(parent):
            return True
        if isinstance(parent, ast.FunctionDef):
            return "cuda" in parent.name.lower() or needs_cuda(module, [parent])
    return False
