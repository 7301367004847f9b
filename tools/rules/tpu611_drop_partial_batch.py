"""TPU611: a training loader whose last batch is smaller."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import argument, spread
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TESTS = re.compile(r"(?i)(^|_|\b)(test|val|valid|validation|eval|predict)(_|\b|$)")
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


class DropPartialBatch(PythonRule):
    """A shuffled ``DataLoader`` without ``drop_last`` ends each epoch with a batch of another shape.

    Every new shape is compiled anew on a TPU, and the program for the partial batch is one more. ``drop_last=True`` avoids
    it at the price of leaving some samples out of an epoch, which changes training, so it is reported only. Loaders that
    do not shuffle, or that are for tests or evaluation by their name or data, are left, for there every sample counts.
    """

    ID = "TPU611"
    NAME = "drop-partial-batch"
    FAMILY = "G"
    GRADE = Grade.ADVICE
    MESSAGE = "the last, smaller batch of an epoch is one more shape to compile for"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = ("DataLoader(",)
    COVERS = ("G6",)
    VALID = (
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=8)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, shuffle=True)\n",
        "from torch.utils.data import DataLoader\ntest_loader = DataLoader(data, batch_size=8, shuffle=True)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(MNIST('d', train=False), batch_size=8, shuffle=True)\n",
        "from torch.utils.data import DataLoader\ndef check_sampler():\n    loader = DataLoader(range(9), batch_size=8, shuffle=True)\n"
        "    assert sorted(loader) == list(range(9))\n",
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
            if _counts_all(module, call):
                continue
            if shuffled is not None and not (isinstance(shuffled, ast.Constant) and not shuffled.value):
                yield Match(*module.span(call), note="drop_last=True keeps one shape; padding the batch does too")


def _counts_all(module: Module, call: ast.Call) -> bool:
    """Whether every sample counts: a loader of test data by its name or its data, or one that a test asserts about."""
    statement, function = module.statement(call), module.function(call)
    names = [module.text(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
    names += [module.text(call.args[0])] if call.args and isinstance(call.args[0], ast.Name | ast.Attribute) else []
    if any(_TESTS.search(name) for name in names):
        return True
    for inner in (n for n in ast.walk(call) if isinstance(n, ast.Call)):
        train, split = keyword(inner, "train"), keyword(inner, "split")
        if train is not None and isinstance(train.value, ast.Constant) and train.value.value is False:
            return True
        if split is not None and _TESTS.search(string(split.value) or ""):
            return True
    return function is not None and _asserts_after(function, call)


def _asserts_after(function: ast.AST, call: ast.Call) -> bool:
    return any(isinstance(n, ast.Assert) and n.lineno > call.lineno for n in ast.walk(function))
