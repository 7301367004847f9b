"""TPU109: the device type derived by asking for CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.device_tests import type_text
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import alone, spell
from tools.rules.base import Invalid, Match, PythonRule


class DeriveDeviceType(PythonRule):
    """``device_type = "cuda" if "cuda" in device else "cpu"`` calls every other accelerator a CPU.

    ``torch.device(device).type`` is the same for CUDA and the CPU, with or without an index, and right for the others.

    Not covered: choices between more than two types.
    """

    ID = "TPU109"
    NAME = "derive-device-type"
    FAMILY = "A"
    MESSAGE = "every device that is not CUDA is called a CPU here"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A14", "C7")
    VALID = (
        "import torch\ndevice_type = torch.device(device).type\n",
        "kind = 'cuda' if 'cuda' in names else 'cpu'\n",
        "kind = 'cuda' if device == 'cuda' else 'other'\n",
    )
    INVALID = (
        Invalid(
            "import torch\ndevice_type = 'cuda' if 'cuda' in device else 'cpu' # for autocast\n",
            "import torch\ndevice_type = torch.device(device).type # for autocast\n",
        ),
        Invalid(
            'import torch\nkind = "cuda" if device.startswith("cuda") else "cpu"\n',
            "import torch\nkind = torch.device(device).type\n",
        ),
        Invalid(
            "from torch import device as D\nkind = 'cuda' if x.device.type == 'cuda' else 'cpu'\n",
            "from torch import device as D\nkind = x.device.type\n",
        ),
        Invalid(
            "import torch\nif 'cuda' in str(device):\n    device_type = 'cuda'\nelse:\n    device_type = 'cpu'\n",
            "import torch\ndevice_type = torch.device(device).type\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields choices between the literals ``"cuda"`` and ``"cpu"`` by a comparison of a device."""
        for choice in module.nodes(ast.IfExp):
            if string(choice.body) == "cuda" and string(choice.orelse) == "cpu":
                yield from self._found(module, choice, choice.test, "")
        for branch in module.nodes(ast.If):
            target = _assigned(branch)
            if target is not None and alone(module, branch) and module.text(branch).startswith("if"):
                yield from self._found(module, branch, branch.test, f"{module.text(target)} = ")

    def _found(self, module: Module, whole: ast.expr | ast.stmt, test: ast.expr, prefix: str) -> Iterator[Match]:
        text = type_text(module, test, spell(module, "torch.device"))
        if text is not None and not on_cuda_path(module, whole):
            written = ("torch.device",) if text.endswith(").type") else ()
            yield Match(*module.span(whole), fix=imported(module, [module.replace(whole, prefix + text)], *written))


def _assigned(branch: ast.If) -> ast.expr | None:
    """The variable that both branches set, to ``"cuda"`` and to ``"cpu"``."""
    if len(branch.body) != 1 or len(branch.orelse) != 1:
        return None
    first, second = branch.body[0], branch.orelse[0]
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
        return None
    if string(first.value) != "cuda" or string(second.value) != "cpu":
        return None
    same = len(first.targets) == 1 and dotted(first.targets[0]) == dotted(second.targets[0]) is not None
    return first.targets[0] if same else None
