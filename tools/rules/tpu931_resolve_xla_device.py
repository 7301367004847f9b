"""TPU931: torch_xla's device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.edits import Edit
from tools.code.literals import means_device
from tools.code.module import Module, string
from tools.code.rewrite import device, spell
from tools.code.torch_xla import OPTIONAL, aside, needs_torch_xla
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DEVICE = ("torch_xla.core.xla_model.xla_device", "torch_xla.device")
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class ResolveXlaDevice(PythonRule):
    """``xm.xla_device()`` and the string ``"xla"`` name torch_xla's device, which torch_tpu does not have.

    The resolved device takes its place: the TPU with torch_tpu, the CPU where there is no accelerator.

    Fixed where the file cannot be loaded without torch_xla; where torch_xla is optional, the first call of a file that
    only its users come to is reported, as the place that other devices need a branch beside. Not
    covered: comparisons with ``"xla"``.
    """

    ID = "TPU931"
    NAME = "resolve-xla-device"
    FAMILY = "I"
    MESSAGE = "this is torch_xla's device; torch_tpu's is found through torch.accelerator"
    TRIGGERS = ("xla_device", "xla.device", '"xla', "'xla")
    REQUIRES = ("xla",)
    PATTERN = r"xla_device|torch_xla|xla\.device|[\"']xla(:\d+)?[\"']"
    COVERS = ("A4", "I10")
    VALID = (
        "import torch\nif device.type == 'xla':\n    pass\n",
        "import torch_xla.core.xla_model as xm\nd = xm.xla_real_devices()\n",
        "def xla_device():\n    return 1\nd = xla_device()\n",
        "backend = 'xla'\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch_xla.core.xla_model as xm\n\ndevice = xm.xla_device()\nmodel.to(device)\n",
            f"import torch\nimport torch_xla.core.xla_model as xm\n\n{_TOP}\n"
            "device = torch.device(DEVICE_TYPE)\nmodel.to(device)\n",
        ),
        Invalid(
            "import torch\nimport torch_xla\n\ndef main():\n    return torch.ones(2, device=torch_xla.device())\n",
            f"import torch\nimport torch_xla\n\n{_TOP}\ndef main():\n"
            "    return torch.ones(2, device=torch.device(DEVICE_TYPE))\n",
        ),
        Invalid(
            "import torch\nimport torch_xla\n\nx = torch.ones(2).to('xla')\n",
            f"import torch\nimport torch_xla\n\n{_TOP}\nx = torch.ones(2).to(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import time\n\nimport torch_xla\n\n\ndef f():\n    return torch_xla.device()\n",
            f"import time\n\nimport torch\nimport torch_xla\n\n{_TOP}\n\ndef f():\n    return torch.device(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\ntry:\n    import torch_xla.core.xla_model as xm\nexcept ImportError:\n    xm = None\n"
            "device = xm.xla_device() if xm else torch.device('cpu')\nother = xm.xla_device(1) if xm else None\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls for the device, and the literal where it means a device."""
        nodes: list[ast.expr] = list(module.calls(*_DEVICE))
        for literal in module.nodes(ast.Constant):
            if re.fullmatch(r"xla(:\d+)?", string(literal) or "") and means_device(module, literal):
                nodes.append(literal)
        told = False
        for node in nodes:
            if aside(module, node):
                if told:
                    continue
                told = True
            yield from self._match(module, node, whole=isinstance(node, ast.Call))

    def _match(self, module: Module, node: ast.expr, *, whole: bool) -> Iterator[Match]:
        if not needs_torch_xla(module):
            yield Match(*module.span(node), grade=Grade.ADVICE, note=OPTIONAL)
            return
        name, edits = device(module, node)
        loose = " if " in name
        text = f"{spell(module, 'torch.device')}({name})" if whole else f"({name})" if loose else name
        bare = name.isidentifier() and not name.isupper()
        change: list[Edit] = [module.replace(node, name if bare else text), *edits]
        yield Match(*module.span(node), fix=imported(module, change, "torch.device"))
