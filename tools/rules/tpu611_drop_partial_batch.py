"""TPU611: a training loader whose last batch is smaller."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.calls import argument, spread
from tools.findings import Grade
from tools.guards import on_cuda_path
from tools.module import Module
from tools.rules.base import Invalid, Match, PythonRule

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


class DropPartialBatch(PythonRule):
    """A shuffled ``DataLoader`` without ``drop_last`` ends each epoch with a batch of another shape.

    Every new shape is compiled anew on a TPU, and the program for the partial batch is one more. ``drop_last=True`` avoids
    it at the price of leaving some samples out of an epoch, which changes training, so it is reported only. Loaders that
    do not shuffle are taken to be for evaluation, where every sample counts.
    """

    ID = "TPU611"
    NAME = "drop-partial-batch"
    FAMILY = "G"
    GRADE = Grade.ADVICE
    MESSAGE = "the last, smaller batch of an epoch is one more shape to compile for"
    WHOLE_WORDS = True
    TRIGGERS = ("DataLoader(",)
    COVERS = ("G6",)
    VALID = (
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=8)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, shuffle=True)\n",
    )
    INVALID = (
        Invalid(
            "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=args.batch, shuffle=True)\n",
            None,
        ),
        Invalid("import torch\nloader = torch.utils.data.DataLoader(data, 64, True)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields shuffled loaders of several samples a batch that keep the rest."""
        for call in module.calls(*_LOADERS):
            size, shuffled = argument(call, "batch_size", 1), argument(call, "shuffle", 2)
            kept = argument(call, "drop_last", 8) is None
            single = size is None or (isinstance(size, ast.Constant) and size.value in (1, None))
            if single or not kept or spread(call) or on_cuda_path(module, call):
                continue
            if shuffled is not None and not (isinstance(shuffled, ast.Constant) and not shuffled.value):
                yield Match(*module.span(call), note="drop_last=True keeps one shape; padding the batch does too")
