"""TPU303: a gradient scaler that is enabled off CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import add_keyword, argument, conjunction, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import cuda_test, import_edits
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SCALER = ("torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler")
_OLD = ("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")
_SHARDED = ("torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",)


_CHOSEN = "the device is chosen in the call; let enabled hold only where the scaler works"


class EnableScalerOnCuda(PythonRule):
    """Loss scaling is for float16 on CUDA; TPUs compute in bfloat16 and TorchTPU has no kernels for it.

    The scaler is enabled only where CUDA is there. A disabled ``GradScaler`` hands ``scale``, ``unscale_``, ``step`` and
    ``update`` through and has an empty state, so the training loop stays as it is, CUDA keeps its scaling, and checkpoints
    that hold a scaler's state still load. ``GradScaler("tpu")`` would be enabled without a word and fail at the first
    step.

    A scaler for the CPU (``GradScaler("cpu")``) is left alone, and so is one whose device is a variable and CPU: there it
    would have been enabled, so the variable's own type is asked.
    """

    ID = "TPU303"
    NAME = "enable-scaler-on-cuda"
    FAMILY = "C"
    MESSAGE = "a gradient scaler only works on CUDA; elsewhere it must be disabled"
    WHOLE_WORDS = True
    TRIGGERS = ("GradScaler",)
    COVERS = ("C1", "C4", "C9")
    VALID = (
        "import torch\nscaler = torch.amp.GradScaler('cuda', enabled=torch.cuda.is_available())\n",
        "import torch\nscaler = torch.amp.GradScaler('cpu')\n",
        "import torch\nscaler = torch.amp.GradScaler('cuda', enabled=False)\n",
        "import torch\nscaler = torch.amp.GradScaler(device.type, enabled=use_amp and device.type == 'cuda')\n",
        "import torch\nif torch.cuda.is_available():\n    scaler = torch.amp.GradScaler('cuda')\n",
    )
    INVALID = (
        Invalid(
            'import torch\nscaler = torch.amp.GradScaler("cuda")\n',
            'import torch\nscaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())\n',
        ),
        Invalid(
            "import torch\nscaler = torch.cuda.amp.GradScaler(enabled=(dtype == 'float16'))\n",
            "import torch\nscaler = torch.cuda.amp.GradScaler(enabled=(dtype == 'float16') and torch.cuda.is_available())\n",
        ),
        Invalid(
            "import torch\nfrom torch.amp import GradScaler\nscaler = GradScaler(init_scale=2.0**8, enabled=True)\n",
            "import torch\nfrom torch.amp import GradScaler\n"
            "scaler = GradScaler(init_scale=2.0**8, enabled=torch.cuda.is_available())\n",
        ),
        Invalid(
            "import torch\nscaler = torch.amp.GradScaler(device_type)\n",
            'import torch\nscaler = torch.amp.GradScaler(device_type, enabled=device_type in ("cpu", "cuda"))\n',
        ),
        Invalid(
            "import torch\nscaler = torch.GradScaler(device=device, enabled=args.fp16)\n",
            "import torch\nscaler = torch.GradScaler(device=device, "
            'enabled=args.fp16 and torch.device(device).type in ("cpu", "cuda"))\n',
        ),
        Invalid("import torch\nscaler = torch.amp.GradScaler('cuda', **options)\n", None),
        Invalid("import torch\nscaler = torch.amp.GradScaler('xpu' if d.type == 'xpu' else 'cuda')\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields scalers that may be enabled off CUDA."""
        for call in module.calls(*_SCALER, *_OLD, "torch.GradScaler"):
            if on_cuda_path(module, call):
                continue
            condition = _condition(module, call)
            enabled = argument(call, "enabled", 4 if module.qualify(call.func) in _OLD else 5)
            if condition is None or _settled(module, enabled):
                continue
            start, end = module.span(call)
            if (
                isinstance(argument(call, "device", 0), ast.IfExp | ast.BoolOp)
                and module.qualify(call.func) not in _OLD
            ):
                yield Match(start, end, grade=Grade.ADVICE, note=_CHOSEN)
                continue
            if spread(call) and enabled is None:
                note = "enabled may be among the star arguments; let it hold only on CUDA"
                yield Match(start, end, grade=Grade.ADVICE, note=note)
                continue
            edit = (
                add_keyword(module, call, f"enabled={condition}")
                if enabled is None
                else conjunction(module, call, enabled, condition)
            )
            yield Match(start, end, fix=Fix((edit, *_imports(module, condition))))


def _condition(module: Module, call: ast.Call) -> str | None:
    """The test under which the scaler may be enabled; None where it is fine on every machine."""
    device = None if module.qualify(call.func) in _OLD else argument(call, "device", 0)
    if device is None or (string(device) or "").startswith("cuda"):
        return cuda_test(module)
    if string(device) is not None:
        return cuda_test(module) if string(device) not in ("cpu", "xpu", "mps") else None
    text = module.text(device)
    if text.endswith("type") or text.isupper():
        return f'{text} in ("cpu", "cuda")'
    return f'torch.device({text}).type in ("cpu", "cuda")'


def _settled(module: Module, enabled: ast.expr | None) -> bool:
    if enabled is None:
        return False
    if isinstance(enabled, ast.Constant) and not enabled.value:
        return True
    text = module.text(enabled)
    return is_cuda_test(module, enabled) or '("cpu", "cuda")' in text


def _imports(module: Module, condition: str) -> list[Edit]:
    return import_edits(module) if "torch." in condition else []
