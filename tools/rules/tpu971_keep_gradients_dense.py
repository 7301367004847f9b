"""TPU971: sparse gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, conjunction, is_on_cpu_or_cuda, on_cpu_or_cuda, spread
from tools.code.cuda_calls import imported
from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag", "torch.nn.functional.embedding",
           "torch.nn.functional.embedding_bag")  # fmt: skip
_SPARSE = ("torch.optim.SparseAdam", "torch.optim.sparse_adam.SparseAdam")
_NOTE = "SparseAdam leaves rows without gradient alone, Adam does not: training on a TPU differs a little"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class KeepGradientsDense(PythonRule):
    """``nn.Embedding(..., sparse=True)`` and ``SparseAdam``: torch_tpu has no sparse operators.

    On a TPU gradients are dense and Adam takes SparseAdam's place; on the CPU and CUDA nothing changes.

    Not covered: sparse tensors made by hand.
    """

    ID = "TPU971"
    NAME = "keep-gradients-dense"
    FAMILY = "L"
    MESSAGE = "gradients are sparse here, and torch_tpu has no sparse operators"
    TRIGGERS = ("sparse=", "sparse =", "SparseAdam")
    REQUIRES = ("torch", "Embedding|EmbeddingBag|embedding|embedding_bag|SparseAdam")
    PATTERN = r"sparse *=(?! *False)|SparseAdam"
    COVERS = ("L3",)
    VALID = (
        "import torch.nn as nn\ne = nn.Embedding(9, 4, sparse=False)\n",
        "import torch.nn as nn\ne = nn.Embedding(9, 4, sparse=DEVICE_TYPE in ('cpu', 'cuda'))\n",
        "tf.Input(shape=(1,), sparse=True)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn as nn\n\ne = nn.Embedding(9, 4, sparse=True)\n",
            f"import torch\nimport torch.nn as nn\n\n{_TOP}\n"
            'e = nn.Embedding(9, 4, sparse=DEVICE_TYPE in ("cpu", "cuda"))\n',
        ),
        Invalid(
            "import torch\n\ndef build(m, sparse):\n    m.e = torch.nn.EmbeddingBag(9, 4, sparse=sparse)\n"
            "    return torch.optim.SparseAdam(m.parameters(), lr=0.1)\n",
            f"import torch\n\n{_TOP}\ndef build(m, sparse):\n"
            '    m.e = torch.nn.EmbeddingBag(9, 4, sparse=sparse and DEVICE_TYPE in ("cpu", "cuda"))\n'
            '    return (torch.optim.SparseAdam if DEVICE_TYPE in ("cpu", "cuda") else torch.optim.Adam)(m.parameters(), lr=0.1)\n',
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields sparse tables and their optimizer."""
        for call in module.calls(*_TABLES):
            value = argument(call, "sparse")
            if value is None or on_cuda_path(module, call) or (isinstance(value, ast.Constant) and not value.value):
                continue
            if any(is_on_cpu_or_cuda(n) for n in ast.walk(value) if isinstance(n, ast.expr)):
                continue
            condition, edits = on_cpu_or_cuda(module, call)
            fix = Fix((conjunction(module, call, value, condition), *edits))
            yield Match(*module.span(value), fix=fix)
        for call in module.calls(*_SPARSE):
            if on_cuda_path(module, call):
                continue
            if spread(call):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
                continue
            condition, edits = on_cpu_or_cuda(module, call)
            text = f"({module.text(call.func)} if {condition} else {spell(module, 'torch.optim.Adam')})"
            change: list[Edit] = [module.replace(call.func, text), *edits]
            yield Match(*module.span(call), fix=imported(module, change, "torch.optim.Adam"), note=_NOTE)
