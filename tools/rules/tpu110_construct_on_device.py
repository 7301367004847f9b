"""TPU110: legacy constructors with a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.module import Module, keyword, string
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DTYPES = {
    "torch.Tensor": "torch.get_default_dtype()",
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
    "torch.HalfTensor": "torch.float16",
    "torch.LongTensor": "torch.int64",
    "torch.IntTensor": "torch.int32",
    "torch.ByteTensor": "torch.uint8",
    "torch.BoolTensor": "torch.bool",
}
_NOTE = "use torch.tensor(data, dtype=..., device=...) for data, torch.empty(sizes, ...) for sizes"


class ConstructOnDevice(PythonRule):
    """``torch.Tensor(data, device=device)`` takes no device but the CPU and raises for any other.

    A list or tuple becomes ``torch.tensor(..., dtype=..., device=...)``, sizes written as numbers become
    ``torch.empty``; what a variable holds is left to a person.

    Not covered: subclasses, and ``new_tensor`` methods (which are right).
    """

    ID = "TPU110"
    NAME = "construct-on-device"
    FAMILY = "A"
    MESSAGE = "legacy constructors take no device but the CPU"
    WHOLE_WORDS = True
    TRIGGERS = tuple(f"{name.removeprefix('torch.')}(" for name in _DTYPES)
    REQUIRES = ("device",)
    COVERS = ("A16",)
    VALID = (
        "import torch\nx = torch.Tensor([1.0])\n",
        "import torch\nx = torch.Tensor([1.0], device='cpu')\n",
        "import torch\nx = torch.tensor([1.0], device=device)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nx = torch.FloatTensor([1, 2], device=device)\n",
            "import torch\nx = torch.tensor([1, 2], dtype=torch.float32, device=device)\n",
        ),
        Invalid(
            "import torch as t\nx = t.Tensor(3, 4, device=d)\n",
            "import torch as t\nx = t.empty(3, 4, dtype=t.get_default_dtype(), device=d)\n",
        ),
        Invalid("import torch\nx = torch.Tensor(data, device=device)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls with a ``device`` that is not the literal CPU."""
        for call in module.calls(*_DTYPES):
            place = keyword(call, "device")
            if place is None or string(place.value) == "cpu" or not call.args:
                continue
            name = module.qualify(call.func) or ""
            maker = _maker(call)
            if maker is None or len(call.keywords) > 1:
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
                continue
            dtype = spell(module, _DTYPES[name].removesuffix("()")) + ("()" if _DTYPES[name].endswith("()") else "")
            edits = [
                module.replace(call.func, spell(module, maker)),
                module.replace(place, f"dtype={dtype}, {module.text(place)}"),
            ]
            yield Match(*module.span(call), fix=imported(module, edits, maker))


def _maker(call: ast.Call) -> str | None:
    if len(call.args) == 1 and isinstance(call.args[0], ast.List | ast.Tuple | ast.ListComp):
        return "torch.tensor"
    if all(isinstance(a, ast.Constant) and isinstance(a.value, int) for a in call.args):
        return "torch.empty"
    return None
