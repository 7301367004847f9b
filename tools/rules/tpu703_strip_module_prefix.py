"""TPU703: checkpoints of a model that DataParallel wraps on CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule
from tools.rules.tpu701_wrap_data_parallel_on_cuda import NAMES


class StripModulePrefix(PythonRule):
    """``model.load_state_dict(...)`` where ``nn.DataParallel`` wraps the model on CUDA only.

    A file written there has ``module.`` before every name, and a model that is not wrapped refuses it. PyTorch's
    ``consume_prefix_in_state_dict_if_present`` takes the prefix off. Reported only: whether files cross machines is for the
    owner to say.
    """

    ID = "TPU703"
    NAME = "strip-module-prefix"
    FAMILY = "P"
    GRADE = Grade.ADVICE
    MESSAGE = "a checkpoint written under DataParallel on CUDA has names with the prefix module. and does not load here"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = ("DataParallel", "load_state_dict")
    REQUIRES = ("DataParallel", "load_state_dict")
    COVERS = ("P1",)
    VALID = (
        "import torch\nm = torch.nn.DataParallel(m)\nfor k in list(state):\n    state[k[7:]] = state.pop(k)\nm.load_state_dict(state)\n",
        "import torch\ndef clean(s):\n    return {k.replace('module.', ''): v for k, v in s.items()}\n\n"
        "m = torch.nn.DataParallel(m)\nm.load_state_dict(clean(torch.load(p)))\n",
        "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\nmodel.load_state_dict(state)\n",
        "import torch\nother = torch.nn.DataParallel(other)\nmodel.load_state_dict(state)\n",
        "import torch\nif torch.cuda.is_available():\n    m = torch.nn.DataParallel(m)\n    m.load_state_dict(state)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif device == 'cuda':\n    net = torch.nn.DataParallel(net)\nnet.load_state_dict(state['net'])\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields states loaded into a model that is wrapped on some devices only."""
        note = "take it off with torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, 'module.')"
        wrapped = set()
        for call in module.calls(*NAMES):
            statement = module.statement(call)
            if isinstance(statement, ast.Assign):
                wrapped |= {name for target in statement.targets if (name := dotted(target))}
        for call in module.nodes(ast.Call):
            function = call.func
            if isinstance(function, ast.Attribute) and function.attr == "load_state_dict":
                if dotted(function.value) in wrapped and not on_cuda_path(module, call) and not _stripped(module, call):
                    yield Match(*module.span(call), note=note)


_STRIPS = re.compile(r"""["']module\.?["']|\[7:\]|consume_prefix|\.split\(["']\.["']\)\[""")


def _stripped(module: Module, call: ast.Call) -> bool:
    """Whether the prefix is taken off by hand: around the call, or by the function whose answer is loaded."""
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Call):
        maker = next((n for n in module.tree.body if getattr(n, "name", None) == dotted(given.func)), None)
        return maker is not None and _STRIPS.search(module.text(maker)) is not None
    around = module.function(call)
    name = dotted(given) if given is not None else None
    text = module.text(around) if around is not None else module.source.text
    return name is not None and _STRIPS.search(text) is not None
