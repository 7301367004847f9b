"""TPU106: new tensors put on CUDA by the default tensor type."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.cuda_calls import imported, statement_of
from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.literals import legacy_type
from tools.code.module import Module
from tools.code.rewrite import cuda_test, device, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_SETTER = "torch.set_default_device"
_NOTE = (
    "legacy constructors such as torch.Tensor([...]) ignore the default device and stay on the CPU; "
    "generators of samplers must match the default device"
)
_OTHER = "set the device with torch.set_default_device and the type with torch.set_default_dtype"


class SetDefaultDevice(PythonRule):
    """``torch.set_default_tensor_type(torch.cuda.FloatTensor)`` fails without CUDA.

    It stays as it is on CUDA; elsewhere ``torch.set_default_device`` puts new tensors on the resolved device.

    Not covered: types other than ``FloatTensor``, which also change the default dtype.
    """

    ID = "TPU106"
    NAME = "set-default-device"
    FAMILY = "A"
    MESSAGE = "the default tensor type puts new tensors on CUDA and fails without it"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "set_default_tensor_type")
    COVERS = ("A17",)
    VALID = (
        "import torch\ntorch.set_default_tensor_type(torch.FloatTensor)\n",
        "import torch\nif torch.cuda.is_available():\n    torch.set_default_tensor_type('torch.cuda.FloatTensor')\n",
    )
    INVALID = (
        Invalid(
            "import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n",
            f"import torch\n\n{_TOP}torch.set_default_tensor_type('torch.cuda.FloatTensor') "
            "if torch.cuda.is_available() else torch.set_default_device(DEVICE_TYPE)\n",
        ),
        Invalid("import torch\ntorch.set_default_tensor_type(torch.cuda.HalfTensor)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls that set a CUDA type off the CUDA-only path."""
        for call in module.calls("torch.set_default_tensor_type"):
            kind = legacy_type(module, call.args[0]) if call.args else None
            if kind is None or on_cuda_path(module, call):
                continue
            if kind != "FloatTensor" or statement_of(module, call) is None:
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_OTHER)
                continue
            name, edits = device(module, call)
            text = f"{module.text(call)} if {cuda_test(module)} else {spell(module, _SETTER)}({name})"
            fix = imported(module, [module.replace(call, text), *edits], _SETTER)
            yield Match(*module.span(call), fix=Fix(fix.edits, _NOTE))
