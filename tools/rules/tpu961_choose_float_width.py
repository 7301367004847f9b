"""TPU961: tables in float64."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import argument
from tools.code.cuda_calls import imported
from tools.code.edits import Edit
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, keyword
from tools.code.rewrite import device_type, parenthesised, spell
from tools.rules.base import Invalid, Match, PythonRule

_FACTORIES = frozenset(
    f"torch.{name}" for name in ("arange", "linspace", "logspace", "outer", "zeros", "ones", "full", "tensor")
)
_WIDE = ("torch.float64", "torch.double")
_ROTARY = re.compile(r"(?i)rope|rotary|freq|pos_?emb|position|sincos|sinusoid|timestep|embedding")
_NOTE = "tables of float32 differ from those of float64 by 1e-5 to 1e-4 for usual lengths; look at very long contexts"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class ChooseFloatWidth(PythonRule):
    """``torch.arange(n, dtype=torch.float64)`` in a rotary or sinusoidal table.

    TPUs emulate float64 at a fraction of the speed, and other accelerators have none. The table is made in float32 off
    CUDA and the CPU, where nothing changes; the device asked is the one the table is made on.

    Only tensors made in functions or classes whose name speaks of positions, frequencies or embeddings count; float64 in
    metrics and tests is meant.
    """

    ID = "TPU961"
    NAME = "choose-float-width"
    FAMILY = "K"
    MESSAGE = "float64 is emulated on a TPU, and missing on other accelerators"
    TRIGGERS = ("torch.float64", "torch.double")
    COVERS = ("K1",)
    VALID = (
        "import torch\nx = torch.zeros(3, dtype=torch.float64)\n",
        "import torch\ndef rope(n):\n    return torch.arange(n, dtype=torch.float32)\n",
        "import torch\ndef rope(n):\n    return torch.arange(n, dtype=torch.float64, device='cpu')\n",
        "import torch\ndef get_freqs(n, device):\n"
        '    return torch.arange(n, dtype=torch.float64 if device.type in ("cpu", "cuda") else torch.float32, device=device)\n',
    )
    INVALID = (
        Invalid(
            "import torch\n\n\ndef rope_table(n, x):\n    return torch.arange(n, dtype=torch.float64, device=x.device)\n",
            "import torch\n\n\ndef rope_table(n, x):\n"
            '    return torch.arange(n, dtype=torch.float64 if x.device.type in ("cpu", "cuda") else torch.float32, '
            "device=x.device)\n",
        ),
        Invalid(
            "import torch\n\n\ndef get_frequencies(n):\n    return torch.arange(n, dtype=torch.double)\n",
            f"import torch\n\n{_TOP}\n\ndef get_frequencies(n):\n"
            '    return torch.arange(n, dtype=torch.double if DEVICE_TYPE in ("cpu", "cuda") else torch.float32)\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields wide dtypes given to constructors of such tables."""
        for node in module.references(*_WIDE):
            holder = module.parent(node)
            call = module.parent(holder) if isinstance(holder, ast.keyword) and holder.arg == "dtype" else None
            if not isinstance(call, ast.Call) or module.qualify(call.func) not in _FACTORIES:
                continue
            if not _is_table(module, call) or on_cuda_path(module, call):
                continue
            place = argument(call, "device")
            if place is not None and (isinstance(place, ast.Constant) or not dotted(place)):
                continue
            test, edits = _test(module, call, place)
            text = f"{module.text(node)} if {test} else {spell(module, 'torch.float32')}"
            change: list[Edit] = [module.replace(node, parenthesised(module, node, text)), *edits]
            yield Match(*module.span(node), fix=imported(module, change, "torch.float32"), note=_NOTE)


def _is_table(module: Module, call: ast.Call) -> bool:
    holders = [a for a in module.ancestors(call) if isinstance(a, ast.FunctionDef | ast.ClassDef)]
    return any(_ROTARY.search(holder.name) for holder in holders) and keyword(call, "out") is None


def _test(module: Module, call: ast.Call, place: ast.expr | None) -> tuple[str, list[Edit]]:
    if place is None:
        name, edits = device_type(module, call)
        return f'{f"({name})" if " if " in name else name} in ("cpu", "cuda")', edits
    text = module.text(place)
    kind = f"{text}.type" if text.endswith(".device") else f"{spell(module, 'torch.device')}({text}).type"
    return f'{kind} in ("cpu", "cuda")', []
