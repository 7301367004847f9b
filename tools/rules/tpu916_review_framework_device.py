"""TPU916: devices asked of a training framework."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_LIGHTNING = ("pytorch_lightning", "lightning", "lightning_fabric")
_DEVICES = frozenset({"gpu", "cuda", "tpu"})
_OLD = ("gpus", "tpu_cores", "auto_select_gpus", "auto_scale_batch_size")
_NOTE_LIGHTNING = (
    "Lightning drives CUDA, MPS and, through torch_xla, its own TPU mode, but not torch_tpu; give accelerator a custom "
    "Accelerator for torch.device('tpu'), or write the loop out"
)
_NOTE_RAY = (
    "workers with use_gpu get no TPU; ask for TPU resources and set up torch.distributed in the training function"
)


class ReviewFrameworkDevice(PythonRule):
    """``Trainer(accelerator="gpu")`` of Lightning and ``ScalingConfig(use_gpu=True)`` of Ray choose the device themselves.

    Neither knows torch_tpu: Lightning's own TPU mode goes through torch_xla, and Ray's configuration has no field for it.
    Their precision settings (``precision="16-mixed"``) go with the accelerator they choose.

    Reported only.
    """

    ID = "TPU916"
    NAME = "review-framework-device"
    FAMILY = "F"
    GRADE = Grade.ADVICE
    MESSAGE = "this framework chooses its devices itself, and does not know torch_tpu"
    TRIGGERS = ("Trainer(", "Fabric(", "ScalingConfig(", "seed_everything(")
    PATTERN = r"^[ \t]*(from|import) +(pytorch_lightning|lightning|ray)\b"
    COVERS = ("C14", "I10", "R5")
    VALID = (
        "import lightning as L\ntrainer = L.Trainer(accelerator='cpu')\n",
        "from transformers import Trainer\nimport ray\nTrainer(accelerator='gpu')\n",
        "from ray.train import ScalingConfig\nScalingConfig(num_workers=2)\n",
    )
    INVALID = (
        Invalid("import pytorch_lightning as pl\ntrainer = pl.Trainer(accelerator='gpu', devices=2)\n", None),
        Invalid("from lightning.pytorch import Trainer\nTrainer(gpus=1)\n", None),
        Invalid("from ray.train import ScalingConfig\nScalingConfig(num_workers=2, use_gpu=True)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields trainers and configurations that name a device."""
        for call in module.nodes(ast.Call):
            name = module.qualify(call.func) or ""
            package, _, last = name.partition(".")[0], "", name.rpartition(".")[2]
            if on_cuda_path(module, call):
                continue
            if package in _LIGHTNING and last in ("Trainer", "Fabric") and _names_device(call):
                yield Match(*module.span(call), note=_NOTE_LIGHTNING)
            if package == "ray" and last == "ScalingConfig":
                wanted = keyword(call, "use_gpu")
                if wanted is not None and not (isinstance(wanted.value, ast.Constant) and not wanted.value.value):
                    yield Match(*module.span(call), note=_NOTE_RAY)


def _names_device(call: ast.Call) -> bool:
    chosen = keyword(call, "accelerator")
    if chosen is not None and string(chosen.value) in _DEVICES:
        return True
    return any(keyword(call, name) is not None for name in _OLD)
