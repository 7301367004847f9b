"""TPU305: autocast for whichever device, in float16."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import add_keyword, argument, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule
from tools.rules.tpu302_resolve_autocast_device import AUTOCAST, HALF


class ChooseAutocastDtype(PythonRule):
    """``torch.autocast(device_type)`` without a dtype takes the device's default, which is float16 on TorchTPU.

    Float16 without a gradient scaler underflows, and TPUs compute in bfloat16. The defaults of CUDA (float16) and of the
    CPU (bfloat16) stay; an explicit float16 stays on both and becomes bfloat16 elsewhere. So does a variable's, in a file
    that names float16 anywhere: a table such as ``{"fp16": torch.float16}[options.precision]`` may have put it there.

    Not covered: device types that are neither a name nor an attribute; a dtype in a variable that another file fills.
    """

    ID = "TPU305"
    NAME = "choose-autocast-dtype"
    FAMILY = "C"
    MESSAGE = "autocast would compute in float16 on a TPU; name bfloat16 for it"
    WHOLE_WORDS = True
    TRIGGERS = ("autocast",)
    COVERS = ("C2",)
    VALID = (
        "import torch\nif device.type in {'cuda', 'mps'}:\n    with torch.autocast(device.type):\n        f()\n",
        "import torch\nwith torch.autocast(device_type, dtype=torch.bfloat16):\n    pass\n",
        "import torch\nwith torch.autocast(device_type, enabled=False):\n    pass\n",
        "import torch\nif device_type == 'cuda':\n    context = torch.autocast(device_type, dtype=torch.float16)\n",
        "import torch\nwith torch.autocast('cpu'):\n    pass\n",
        "import torch\nwith torch.autocast(device_type, dtype=dtype):\n    y = x.to(torch.bfloat16)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nwith torch.autocast(device_type):\n    pass\n",
            "import torch\n"
            'with torch.autocast(device_type, dtype=torch.float16 if device_type == "cuda" else torch.bfloat16):\n    pass\n',
        ),
        Invalid(
            "import torch\nwith torch.autocast(device_type=device.type, dtype=torch.half, enabled=amp):\n    pass\n",
            "import torch\nwith torch.autocast(device_type=device.type, "
            'dtype=torch.half if device.type in ("cpu", "cuda") else torch.bfloat16, enabled=amp):\n    pass\n',
        ),
        Invalid(
            "import torch\nif device_type == 'npu':\n    start()\nwith torch.autocast(device_type):\n    pass\n",
            None,
        ),
        Invalid(
            "import torch\ndtype = {'fp16': torch.float16, 'bf16': torch.bfloat16}[precision]\n"
            "with torch.autocast(device_type, dtype=dtype):\n    pass\n",
            "import torch\ndtype = {'fp16': torch.float16, 'bf16': torch.bfloat16}[precision]\n"
            'with torch.autocast(device_type, dtype=dtype if device_type in ("cpu", "cuda") or dtype != torch.float16 '
            "else torch.bfloat16):\n    pass\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields autocast calls with a device type in a variable whose dtype is, or defaults to, float16."""
        for call in module.calls(*AUTOCAST):
            device = argument(call, "device_type", 0)
            if not isinstance(device, ast.Name | ast.Attribute) or spread(call) or on_cuda_path(module, call):
                continue
            enabled = argument(call, "enabled", 2)
            if isinstance(enabled, ast.Constant) and not enabled.value:
                continue
            edit = _edit(module, call, module.text(device))
            if edit is not None and _VENDORS.search(module.source.text):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_DISPATCHES)
            elif edit is not None:
                yield Match(*module.span(call), fix=Fix((edit,)))


_VENDORS = re.compile(r"\b(npu|mlu|musa|hpu)\b")
_DISPATCHES = "the devices of other vendors go through here too, so say bfloat16 where it is a TPU"


def _edit(module: Module, call: ast.Call, device: str) -> Edit | None:
    dtype = argument(call, "dtype", 1)
    bfloat16 = spell(module, "torch.bfloat16")
    if dtype is None:
        half = spell(module, "torch.float16")
        return add_keyword(module, call, f'dtype={half} if {device} == "cuda" else {bfloat16}')
    if module.qualify(dtype) in HALF:
        return module.replace(dtype, f'{module.text(dtype)} if {device} in ("cpu", "cuda") else {bfloat16}')
    if isinstance(dtype, ast.Name | ast.Attribute) and module.qualify(dtype) is None and _names_half(module):
        kept = f'{device} in ("cpu", "cuda") or {module.text(dtype)} != {spell(module, "torch.float16")}'
        return module.replace(dtype, f"{module.text(dtype)} if {kept} else {bfloat16}")
    return None


def _names_half(module: Module) -> bool:
    return "float16" in module.source.text.replace("bfloat16", "") or "torch.half" in module.source.text
