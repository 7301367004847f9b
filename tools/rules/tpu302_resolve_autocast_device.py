"""TPU302: autocast for the literal device ``"cuda"``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import add_keyword, argument, conjunction, device_type_operand, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast")
HALF = frozenset({"torch.float16", "torch.half"})

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_DTYPE = 'torch.float16 if DEVICE_TYPE == "cuda" else torch.bfloat16'


class ResolveAutocastDevice(PythonRule):
    """``torch.autocast("cuda")`` switches itself off, with a warning only, wherever CUDA is absent.

    The device type becomes the resolved one. On the CPU, where the region ran in full precision, it stays off
    (``enabled=... != "cpu"``). A region that leaves autocast (``enabled=False``) is one that needs full precision, so
    it leaves it on every device; the CPU computes as before unless it is under an autocast of its own.
    Without a dtype TorchTPU would take float16, which has no gradient scaler there, so float16 is kept on CUDA and
    bfloat16 taken elsewhere, whether float16 was written out or the default.

    Not covered: a dtype held in a variable (TPU205 sees to the choice itself).
    """

    ID = "TPU302"
    NAME = "resolve-autocast-device"
    FAMILY = "C"
    MESSAGE = "autocast for 'cuda' disables itself on any other device"
    WHOLE_WORDS = True
    TRIGGERS = ("autocast",)
    COVERS = ("C3", "C4", "C7", "A18", "C8")
    VALID = (
        "import torch\nwith torch.autocast('cuda', enabled=amp and x.is_cuda):\n    pass\n",
        "import torch\nwith torch.autocast(device_type=device.type, dtype=torch.bfloat16):\n    pass\n",
        "import torch\nif device.type == 'cuda':\n    context = torch.autocast('cuda')\n",
        "import torch\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n    pass\n",
    )
    INVALID = (
        Invalid(
            'import torch\n\nwith torch.autocast("cuda"):\n    y = f(x)\n',
            f'import torch\n\n{_TOP}\nwith torch.autocast(DEVICE_TYPE, dtype={_DTYPE}, enabled=DEVICE_TYPE != "cpu"):\n'
            "    y = f(x)\n",
        ),
        Invalid(
            "import torch\n\n@torch.amp.autocast(device_type='cuda', dtype=torch.bfloat16, enabled=a or b)\ndef f(x):\n"
            "    return x\n",
            f"import torch\n\n{_TOP}\n"
            '@torch.amp.autocast(device_type=DEVICE_TYPE, dtype=torch.bfloat16, enabled=(a or b) and DEVICE_TYPE != "cpu")\n'
            "def f(x):\n    return x\n",
        ),
        Invalid(
            "import torch\nfrom torch.amp import autocast\n\nwith autocast('cuda', torch.float16, use_amp):\n    pass\n"
            "with autocast('cuda', enabled=False):\n    pass\nwith autocast('cuda', dtype=dtype, enabled=True):\n    pass\n",
            f"import torch\nfrom torch.amp import autocast\n\n{_TOP}\n"
            f'with autocast(DEVICE_TYPE, {_DTYPE}, use_amp and DEVICE_TYPE != "cpu"):\n    pass\n'
            "with autocast(DEVICE_TYPE, enabled=False):\n    pass\n"
            'with autocast(DEVICE_TYPE, dtype=dtype, enabled=DEVICE_TYPE != "cpu"):\n    pass\n',
            count=3,
        ),
        Invalid(
            "import torch\ndevice = torch.device(torch.accelerator.current_accelerator().type "
            "if torch.accelerator.is_available() else 'cpu')\nwith torch.autocast('cuda', dtype=torch.bfloat16):\n    pass\n",
            "import torch\ndevice = torch.device(torch.accelerator.current_accelerator().type "
            "if torch.accelerator.is_available() else 'cpu')\n"
            'with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type != "cpu"):\n    pass\n',
        ),
        Invalid("import torch\nwith torch.autocast('cuda', **options):\n    pass\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields autocast calls with a CUDA literal off the CUDA-only path."""
        for call in module.calls(*AUTOCAST):
            literal = argument(call, "device_type", 0)
            if literal is None or not (string(literal) or "").startswith("cuda") or on_cuda_path(module, call):
                continue
            enabled = argument(call, "enabled", 2)
            if enabled is not None and is_cuda_test(module, enabled):
                continue
            start, end = module.span(call)
            if spread(call):
                note = "dtype and enabled may be among the star arguments; resolve the device type by hand"
                yield Match(start, end, grade=Grade.ADVICE, note=note)
            else:
                yield Match(start, end, fix=Fix(tuple(_edits(module, call, literal))))


def _edits(module: Module, call: ast.Call, literal: ast.expr) -> list[Edit]:
    name, top = device_type_operand(module, call)
    enabled = argument(call, "enabled", 2)
    if isinstance(enabled, ast.Constant) and enabled.value is False:
        return [module.replace(literal, name), *top]
    edits = [module.replace(literal, name), *top]
    added = []
    dtype = argument(call, "dtype", 1)
    chosen = f'{spell(module, "torch.float16")} if {name} == "cuda" else {spell(module, "torch.bfloat16")}'
    if dtype is None or (isinstance(dtype, ast.Constant) and dtype.value is None):
        if dtype is None:
            added.append(f"dtype={chosen}")
        else:
            edits.append(module.replace(dtype, chosen))
    elif module.qualify(dtype) in HALF:
        edits.append(module.replace(dtype, chosen))
    if enabled is None:
        added.append(f'enabled={name} != "cpu"')
    else:
        edits.append(conjunction(module, call, enabled, f'{name} != "cpu"'))
    if added:
        edits.append(add_keyword(module, call, ", ".join(added)))
    return edits
