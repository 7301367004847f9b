"""TPU502: a map location that leads to CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import cuda_test, import_edits
from tools.rules.base import Invalid, Match, PythonRule

_KEY = "map_location"


class MapLocationOnCuda(PythonRule):
    """``map_location=lambda storage, loc: storage.cuda()`` or ``{"cuda:0": f"cuda:{rank}"}``.

    The function or table stays on CUDA. Elsewhere the file is loaded to the CPU, from where ``load_state_dict`` or ``.to``
    takes it to the device; a table without an entry for a place would leave it there.

    Not covered: literals such as ``map_location="cuda"`` (TPU103), functions defined elsewhere.
    """

    ID = "TPU502"
    NAME = "map-location-on-cuda"
    FAMILY = "E"
    MESSAGE = "the loaded tensors are sent to CUDA whatever the program's device is"
    WHOLE_WORDS = True
    TRIGGERS = (_KEY,)
    COVERS = ("E2",)
    VALID = (
        "import torch\nstate = torch.load(path, map_location=lambda storage, loc: storage)\n",
        "import torch\nstate = torch.load(path, map_location={'cuda:0': 'cpu'} if torch.cuda.is_available() else 'cpu')\n",
        "import torch\nif torch.cuda.is_available():\n    s = torch.load(p, map_location=lambda s, _: s.cuda())\n",
    )
    INVALID = (
        Invalid(
            "import torch\nstate = torch.load(path, map_location=lambda storage, loc: storage.cuda(rank))\n",
            "import torch\nstate = torch.load(path, map_location=(lambda storage, loc: storage.cuda(rank)) "
            'if torch.cuda.is_available() else "cpu")\n',
        ),
        Invalid(
            "import torch\nmap_location = {'cuda:%d' % 0: 'cuda:%d' % rank}\n"
            "state = torch.load(path, map_location=map_location)\n",
            "import torch\nmap_location = {'cuda:%d' % 0: 'cuda:%d' % rank} if torch.cuda.is_available() else \"cpu\"\n"
            "state = torch.load(path, map_location=map_location)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields map locations that mention CUDA, off the CUDA-only path."""
        for value in _values(module):
            if not _leads_to_cuda(value) or on_cuda_path(module, value) or _settled(module, value):
                continue
            start, end = module.span(value)
            text = f"({module.text(value)})" if isinstance(value, ast.Lambda) else module.text(value)
            edit = module.replace(value, f'{text} if {cuda_test(module)} else "cpu"')
            yield Match(start, end, fix=Fix((edit, *import_edits(module))))


def _values(module: Module) -> Iterator[ast.expr]:
    for call in module.nodes(ast.Call):
        yield from (k.value for k in call.keywords if k.arg == _KEY)
    for statement in module.nodes(ast.Assign):
        if isinstance(target := statement.targets[0], ast.Name) and target.id == _KEY:
            yield statement.value


def _leads_to_cuda(value: ast.expr) -> bool:
    if isinstance(value, ast.Lambda):
        return any(isinstance(n, ast.Attribute) and n.attr == "cuda" for n in ast.walk(value.body))
    if isinstance(value, ast.Dict):
        return any("cuda" in (string(n) or "") for each in value.values for n in ast.walk(each))
    return False


def _settled(module: Module, value: ast.expr) -> bool:
    parent = module.parent(value)
    return isinstance(parent, ast.IfExp) and is_cuda_test(module, parent.test)
