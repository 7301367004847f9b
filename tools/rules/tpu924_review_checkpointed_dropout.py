"""TPU924: dropout inside activation checkpoints."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_CHECKPOINTS = tuple(
    f"torch.utils.checkpoint.{name}" for name in ("checkpoint", "checkpoint_sequential", "CheckpointFunction.apply")
)


class ReviewCheckpointedDropout(PythonRule):
    """``torch.utils.checkpoint`` in a file with dropout.

    The forward pass is run again for the backward pass and has to draw the same dropout. PyTorch restores the device's
    random state only for backends with a certain attribute, which torch_tpu 0.2.0 lacks: on the simulated device the
    recomputed mask was another one and the gradients were wrong, without a word.

    Reported where the file has dropout and the call does not give up the state itself. Dropout outside the checkpointed
    block, or of probability 0, is fine.
    """

    ID = "TPU924"
    NAME = "review-checkpointed-dropout"
    FAMILY = "H"
    GRADE = Grade.ADVICE
    MESSAGE = "dropout inside a checkpoint is drawn anew in the backward pass on a TPU, and the gradients are wrong"
    TRIGGERS = ("checkpoint(", "checkpoint_sequential(")
    REQUIRES = ("ropout", "checkpoint")
    PATTERN = r"torch\.utils(\.| +import +)checkpoint"
    COVERS = ("H3",)
    VALID = (
        "from torch.utils.checkpoint import checkpoint\ny = checkpoint(block, x, use_reentrant=False)\n",
        "import torch\nfrom torch.utils.checkpoint import checkpoint\nd = torch.nn.Dropout(0.1)\n"
        "y = checkpoint(block, x, preserve_rng_state=False)\n",
        "import torch.nn as nn\nnn.Dropout(0.1)\nsave_checkpoint(x)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.utils.checkpoint import checkpoint\nd = torch.nn.Dropout(0.1)\n"
            "y = checkpoint(block, x, use_reentrant=False)\n",
            None,
        ),
        Invalid(
            "import torch.utils.checkpoint as cp\nimport torch.nn.functional as F\n\ndef f(x):\n    return F.dropout(x, 0.1)\n\n"
            "y = cp.checkpoint(f, x)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields checkpointed calls."""
        note = "keep dropout out of the checkpointed block on a TPU, or checkpoint on other devices only"
        for call in module.calls(*_CHECKPOINTS):
            kept = keyword(call, "preserve_rng_state")
            given_up = kept is not None and isinstance(kept.value, ast.Constant) and not kept.value.value
            if not given_up and not on_cuda_path(module, call):
                yield Match(*module.span(call), note=note)
