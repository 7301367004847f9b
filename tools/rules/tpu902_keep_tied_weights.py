"""TPU902: weights tied by assignment, which a move to the TPU unties."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.edits import Fix
from tools.findings import Grade
from tools.guards import dotted
from tools.module import Module
from tools.rewrite import AVAILABLE, cuda_test, header, insert_after_header, spell
from tools.rules.base import Invalid, Match, PythonRule

_FLAG = "set_swap_module_params_on_conversion"
_ADDED = (
    "# Moving a module to some accelerators makes new parameters; swapping keeps tied weights one tensor.\n"
    "if torch.accelerator.is_available() and not torch.cuda.is_available():\n"
    "    torch.__future__.set_swap_module_params_on_conversion(True)\n"
)


class KeepTiedWeights(PythonRule):
    """``self.head.weight = self.embedding.weight`` ties two layers by sharing one Parameter.

    In torch_tpu 0.2.0 ``module.to("tpu")`` makes new Parameters, one for each place, so the tie is lost without a word: the
    model trains on with two tensors, and its parameter count and its results differ. With PyTorch's own switch for swapping
    parameters on conversion the tie and the objects survive (checked: one parameter, the same object).

    The switch is global and works around a fault of the backend, so the fix is graded unsafe; it is set only with an
    accelerator that is not CUDA, and changes nothing elsewhere. Tying again after the move is the alternative.

    Not covered: ties made by a library (``tie_weights`` of Transformers), or through ``setattr``.
    """

    ID = "TPU902"
    NAME = "keep-tied-weights"
    FAMILY = "M"
    GRADE = Grade.UNSAFE
    MESSAGE = "these weights are tied, and moving the model to a TPU unties them silently"
    TRIGGERS = (".weight =", ".weight=", ".bias =")
    COVERS = ("M2",)
    VALID = (
        "import torch\ntorch.__future__.set_swap_module_params_on_conversion(True)\nself.a.weight = self.b.weight\n",
        "self.a.weight.data = self.b.weight.data\n",
        "import torch\nself.a.weight = torch.nn.Parameter(self.b.weight.clone())\n",
        "weight = self.b.weight\nself.weight = other.weight\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn as nn\n\nclass M(nn.Module):\n    def __init__(self):\n"
            "        self.decoder.weight = self.encoder.weight\n",
            f"import torch\nimport torch.nn as nn\n\n{_ADDED}\nclass M(nn.Module):\n    def __init__(self):\n"
            "        self.decoder.weight = self.encoder.weight\n",
            unsafe=True,
        ),
        Invalid("import torch.nn as nn\nmodel.lm_head.weight = model.wte.weight\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields assignments of one layer's weight to another."""
        if _FLAG in module.source.text:
            return
        for statement in module.nodes(ast.Assign):
            source = dotted(statement.value)
            for target in statement.targets:
                name = dotted(target)
                if source is not None and name is not None and _ties(name, source):
                    note = "assumes that parameters may be swapped on conversion; tying again after the move also works"
                    yield Match(*module.span(statement), fix=_fix(module), note=note)
                    break


def _ties(target: str, source: str) -> bool:
    both = [name.split(".") for name in (target, source)]
    return all(len(parts) >= 3 and parts[-1] in ("weight", "bias") for parts in both) and target != source


def _fix(module: Module) -> Fix:
    text = _ADDED.rstrip("\n").replace("    ", module.source.indent)
    text = text.replace("torch.accelerator.is_available()", f"{spell(module, AVAILABLE)}()")
    text = text.replace("torch.cuda.is_available()", cuda_test(module))
    text = text.replace("torch.__future__", spell(module, "torch.__future__"))
    bound = module.names.spelling("torch") is not None
    if not bound:
        text = f"import torch\n\n{text}"
    lines = text.replace("\n", module.source.newline)
    return Fix((insert_after_header(module, lines, blank=bound or not header(module)),))
