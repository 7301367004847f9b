"""TPU304: an autograd function whose casts are tied to CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.calls import argument, device_type_operand
from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_DECORATORS = ("torch.amp.custom_fwd", "torch.amp.custom_bwd", "torch.amp.autocast_mode.custom_fwd",
               "torch.amp.autocast_mode.custom_bwd")  # fmt: skip


class ResolveCustomFunctionDevice(PythonRule):
    """``custom_fwd(device_type="cuda")`` guards a function against autocast on CUDA and nowhere else.

    Under autocast for another device the guard does not fire: ``cast_inputs`` is ignored and low precision reaches code
    that asked for float32. The device type becomes the resolved one, except on the CPU, whose autocast it did not follow.
    """

    ID = "TPU304"
    NAME = "resolve-custom-function-device"
    FAMILY = "C"
    MESSAGE = "the casts of this autograd function happen under CUDA's autocast only"
    WHOLE_WORDS = True
    TRIGGERS = ("custom_fwd", "custom_bwd")
    COVERS = ("C5",)
    VALID = (
        "from torch.amp import custom_fwd\n\n@custom_fwd(device_type=DEVICE)\ndef f(ctx, x):\n    return x\n",
        "import torch\n\n@torch.amp.custom_fwd(device_type='cpu')\ndef f(ctx, x):\n    return x\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\nclass F(torch.autograd.Function):\n    @staticmethod\n"
            "    @torch.amp.custom_fwd(cast_inputs=torch.float32, device_type='cuda')\n    def forward(ctx, x):\n"
            "        return x\n",
            f"import torch\n\n{_TOP}\nclass F(torch.autograd.Function):\n    @staticmethod\n"
            "    @torch.amp.custom_fwd(cast_inputs=torch.float32, device_type=DEVICE_TYPE if DEVICE_TYPE != \"cpu\" else 'cuda')\n    def forward(ctx, x):\n"
            "        return x\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields decorators with a CUDA literal off the CUDA-only path."""
        for call in module.calls(*_DECORATORS):
            literal = argument(call, "device_type")
            if literal is not None and string(literal) == "cuda" and not on_cuda_path(module, call):
                name, edits = device_type_operand(module, call)
                text = _beside_cpu(name, module.text(literal))
                yield Match(*module.span(call), fix=Fix((module.replace(literal, text), *edits)))


def _beside_cpu(name: str, literal: str) -> str:
    """A device type that never is the CPU's, so that a region which left the CPU's autocast alone still does."""
    return f'{name} if {name} != "cpu" else {literal}'
