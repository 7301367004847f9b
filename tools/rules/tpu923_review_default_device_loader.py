"""TPU923: shuffling loaders under a default device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_SPLITS = ("torch.utils.data.random_split", "torch.utils.data.RandomSampler")


class ReviewDefaultDeviceLoader(PythonRule):
    """``torch.set_default_device(device)`` beside a ``DataLoader(shuffle=True)``.

    The loader draws its order with ``torch.randperm``, which then runs on the default device with a CPU generator and
    raises ("Expected a 'tpu' device type for generator"). On CUDA a CUDA generator is the usual way out; on a TPU there
    is none (TPU921), so the default device should go, and tensors and models be placed explicitly.

    Reported only.
    """

    ID = "TPU923"
    NAME = "review-default-device-loader"
    FAMILY = "H"
    GRADE = Grade.ADVICE
    MESSAGE = "with a default device set, the order of a shuffling loader is drawn there, and fails on a TPU"
    TRIGGERS = ("DataLoader(", "random_split(", "RandomSampler(")
    REQUIRES = ("set_default_device",)
    COVERS = ("H8",)
    VALID = (
        "import torch\nfrom torch.utils.data import DataLoader\ntorch.set_default_device(d)\nDataLoader(x, batch_size=2)\n",
        "from torch.utils.data import DataLoader\nDataLoader(x, shuffle=True)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.utils.data import DataLoader\ntorch.set_default_device(d)\nDataLoader(x, 2, shuffle=True)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields loaders that shuffle, splits and random samplers."""
        note = "drop set_default_device and place the model and each batch with .to(device)"
        for call in module.calls(*_LOADERS, *_SPLITS):
            shuffled = argument(call, "shuffle", 2)
            constant = isinstance(shuffled, ast.Constant) and not shuffled.value
            if (module.qualify(call.func) in _SPLITS or (shuffled is not None and not constant)) and not on_cuda_path(
                module, call
            ):
                yield Match(*module.span(call), note=note)
