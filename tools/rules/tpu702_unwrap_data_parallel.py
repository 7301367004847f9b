"""TPU702: ``.module`` of a model that is wrapped on CUDA only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.rules.base import Invalid, Match, PythonRule
from tools.rules.tpu701_wrap_data_parallel_on_cuda import NAMES


class UnwrapDataParallel(PythonRule):
    """``model.module`` of a model that ``nn.DataParallel`` wraps only on some devices.

    ``getattr(model, "module", model)`` is the inner model either way, wrapped or not.

    Not covered: accesses in other files than the wrapping.
    """

    ID = "TPU702"
    NAME = "unwrap-data-parallel"
    FAMILY = "P"
    MESSAGE = "the model is wrapped by DataParallel on CUDA only, so .module is missing elsewhere"
    WHOLE_WORDS = True
    TRIGGERS = ("DataParallel", ".module")
    REQUIRES = ("DataParallel",)
    COVERS = ("P2",)
    VALID = (
        "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\nraw = model.module\n",
        "import torch\nmodel = torch.nn.DataParallel(model)\nraw = model.module if isinstance(model, torch.nn.DataParallel) "
        "else model\n",
        "import torch\nmodel = torch.nn.DataParallel(model)\nif hasattr(model, 'module'):\n    model = model.module\n",
        "import torch\nif torch.cuda.is_available():\n    model = torch.nn.DataParallel(model)\n    raw = model.module\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)\n"
            "if epoch > 1:\n    torch.save(model.module.state_dict(), path)\n",
            "import torch\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)\n"
            'if epoch > 1:\n    torch.save(getattr(model, "module", model).state_dict(), path)\n',
        ),
        Invalid(
            "import torch.nn as nn\n\nclass T:\n    def __init__(self, net):\n        self.net = nn.DataParallel(net)\n\n"
            "    def size(self):\n        return self.net.module.size\n",
            "import torch.nn as nn\n\nclass T:\n    def __init__(self, net):\n        self.net = nn.DataParallel(net)\n\n"
            '    def size(self):\n        return getattr(self.net, "module", self.net).size\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields ``.module`` accesses of wrapped names that are not already behind a test."""
        wrapped = {
            name
            for call in module.calls(*NAMES)
            if isinstance(statement := module.statement(call), ast.Assign)
            for target in statement.targets
            if (name := dotted(target))
        }
        for access in module.nodes(ast.Attribute):
            name = dotted(access.value) if access.attr == "module" and isinstance(access.ctx, ast.Load) else None
            if name in wrapped and not on_cuda_path(module, access) and not _tested(module, access):
                text = f'getattr({name}, "module", {name})'
                yield Match(*module.span(access), fix=Fix((module.replace(access, text),)))


_QUESTION = re.compile(r"(?i)isinstance|hasattr|parallel|distributed|multi|gpu|cuda|ddp")


def _tested(module: Module, access: ast.expr) -> bool:
    """Whether some test around the access already asks what the model is, or whether it is run in parallel."""
    tests = (parent.test for parent in module.ancestors(access) if isinstance(parent, ast.If | ast.IfExp))
    return any(_QUESTION.search(module.text(test)) for test in tests)
