"""TPU116: automatic device maps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_AUTOMATIC = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_NOTE = "load without device_map and move the model with .to(device); shard it explicitly where one chip is too small"


class ReportDeviceMap(PythonRule):
    """``device_map="auto"`` knows CUDA-like devices only: on a TPU host the map is empty and the model stays on the CPU.

    Left to a person, because what is right depends on whether the model fits one chip.

    Not covered: maps built by the user's own code.
    """

    ID = "TPU116"
    NAME = "report-device-map"
    FAMILY = "A"
    GRADE = Grade.ADVICE
    MESSAGE = "an automatic device map leaves the model on the CPU where there is no CUDA device"
    WHOLE_WORDS = True
    TRIGGERS = ("device_map",)
    COVERS = ("A19",)
    VALID = (
        "model = M.from_pretrained(name, device_map=None)\n",
        "model = M.from_pretrained(name, device_map='cpu')\n",
    )
    INVALID = (
        Invalid("model = M.from_pretrained(name, device_map='auto')\n", None),
        Invalid("kwargs = {'device_map': 'balanced'}\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields automatic maps given as an argument or as an entry of a dictionary."""
        for node in module.nodes(ast.Constant):
            if string(node) in _AUTOMATIC and _is_map(module, node) and not on_cuda_path(module, node):
                yield Match(*module.span(node), note=_NOTE)


def _is_map(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.keyword):
        return parent.arg == "device_map"
    if isinstance(parent, ast.Dict):
        return any(string(k) == "device_map" for k, v in zip(parent.keys, parent.values, strict=True) if v is node)
    return False
