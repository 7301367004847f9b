"""TPU415: batch norm over several processes."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NAMES = ("torch.nn.SyncBatchNorm", "torch.nn.SyncBatchNorm.convert_sync_batchnorm")
_NOTE = (
    "keep the batch norm of each process where the device is a TPU (larger local batches help), or sum the statistics "
    "with torch.distributed.all_reduce in a layer of your own"
)


class ReviewSyncBatchNorm(PythonRule):
    """``nn.SyncBatchNorm`` gathers statistics with operators that have kernels for CUDA only.

    In torch_tpu 0.2.0 ``batch_norm_stats`` is not implemented, so the first step of several processes fails; one process
    alone falls back to plain batch norm. Leaving it out changes what is trained, so it is reported only.
    """

    ID = "TPU415"
    NAME = "review-sync-batch-norm"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "SyncBatchNorm has kernels for CUDA only; with several processes it fails on a TPU"
    WHOLE_WORDS = True
    TRIGGERS = ("SyncBatchNorm",)
    REASON = "found by hand in programs of other people; aten::batch_norm_stats is not implemented in torch_tpu 0.2.0"
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)\n",
        "import torch\nif isinstance(m, torch.nn.SyncBatchNorm):\n    pass\n",
        "from own import SyncBatchNorm\nm = SyncBatchNorm(3)\n",
    )
    INVALID = (
        Invalid(
            "import torch.nn as nn\nmodel = nn.SyncBatchNorm.convert_sync_batchnorm(model)\nnorm = nn.SyncBatchNorm(64)\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields conversions and layers off the CUDA-only path."""
        for call in module.calls(*_NAMES):
            if not on_cuda_path(module, call):
                yield Match(*module.span(call), note=_NOTE)
