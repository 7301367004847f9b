"""TPU503: device tensors written to a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_PLACED = re.compile(r"(?i)device|cuda|accelerat|\.to\(|Trainer|rank")
"""What a file has that puts a model on a device, or gets one that may be on one."""


class ReviewSavedDevices(PythonRule):
    """``torch.save(model.state_dict(), path)`` writes each tensor with the device it is on.

    A file saved from a TPU is tagged ``tpu:0``, and a plain PyTorch answers "don't know how to restore data location"
    unless it is given ``map_location="cpu"``. Copying to the CPU before saving avoids that; it is left to a person, because
    optimizer states nest, and the reading side can do it too. Scripts that put nothing on a device are left, and files that the same function loads back. One finding a function.
    """

    ID = "TPU503"
    NAME = "review-saved-devices"
    FAMILY = "E"
    GRADE = Grade.ADVICE
    MESSAGE = "tensors are saved with the device they are on, which another machine may not have"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = ("save(",)
    COVERS = ("E4", "E5")
    VALID = (
        "import torch\ntorch.save({k: v.cpu() for k, v in model.state_dict().items()}, path)\n",
        "import torch\ntorch.save(options, path)\n",
        "import torch\ndef copy(m, device):\n    torch.save(m.state_dict(), path)\n    return torch.load(path)\n",
        "import torch\nmodel = convert(path)\ntorch.save(model.state_dict(), path)\n",
        "import torch\ntorch.save(model.cpu().state_dict(), path)\n",
    )
    INVALID = (
        Invalid("import torch\nmodel.to(device)\ntorch.save(model.state_dict(), path)\n", None),
        Invalid("import torch\nmodel.cuda()\nstate = {'model': model.state_dict()}\ntorch.save(state, path)\n", None),
        Invalid("import torch\nmodel.to(device)\ntorch.save({'model': model.state_dict(), 'epoch': 1}, path)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields saves whose value holds a state dict that was not moved to the CPU."""
        note = 'load it with map_location="cpu", or save {name: value.cpu() for ... in state_dict().items()}'
        seen: set[ast.AST | None] = set()
        for call in module.calls("torch.save", "torch.serialization.save"):
            if not _PLACED.search(module.source.text):
                return
            if call.args and not on_cuda_path(module, call) and _holds_state(_value(module, call)):
                if not _loaded_back(module, call) and module.function(call) not in seen:
                    seen |= {module.function(call)} - {None}
                    yield Match(*module.span(call), note=note)


def _loaded_back(module: Module, call: ast.Call) -> bool:
    """Whether the same function reads the file again, so that it never leaves the machine."""
    function = module.function(call)
    if function is None or len(call.args) < 2:
        return False
    path = re.escape(module.text(call.args[1]))
    return re.search(rf"\bload\(\s*{path}", module.text(function)) is not None


def _value(module: Module, call: ast.Call) -> ast.expr:
    """What is saved; the dictionary a name was given just before, in the same function."""
    saved = call.args[0]
    if isinstance(saved, ast.Name):
        scope = module.function(call)
        for node in ast.walk(scope) if scope is not None else module.walk_all:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                if any(isinstance(t, ast.Name) and t.id == saved.id for t in node.targets):
                    return node.value
    return saved


def _holds_state(value: ast.expr) -> bool:
    names = {n.func.attr for n in ast.walk(value) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    return "state_dict" in names and "cpu" not in names
