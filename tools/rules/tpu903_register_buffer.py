"""TPU903: a module's constant that ``.to(device)`` leaves behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import dotted
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "tensor", "rand", "randn", "tril", "triu",
                 "from_numpy", "as_tensor", "empty", "FloatTensor", "Tensor")
)  # fmt: skip
_SHAPERS = frozenset({"view", "reshape", "unsqueeze", "squeeze", "float", "half", "expand", "repeat", "tril", "triu", "t",
                      "transpose", "bool", "long", "flatten", "contiguous", "pow", "exp", "clone", "detach"})  # fmt: skip


class RegisterBuffer(PythonRule):
    """``self.mask = torch.tril(torch.ones(n, n))`` in a module's constructor is no part of the module.

    ``module.to(device)`` moves parameters and buffers; a tensor in a plain attribute stays on the CPU and meets tensors of
    the device in ``forward``. ``self.register_buffer("mask", ..., persistent=False)`` moves with the module and leaves the
    state dict as it is.

    Reported only, and only where no method moves the attribute itself: some are used on the CPU on purpose.
    """

    ID = "TPU903"
    NAME = "register-buffer"
    FAMILY = "M"
    GRADE = Grade.ADVICE
    MESSAGE = "this tensor does not move with the module; register it as a buffer"
    WHOLE_WORDS = True
    TRIGGERS = tuple(f"{name}(" for name in sorted(_FACTORIES))
    REQUIRES = ("Module",)
    PATTERN = r"self\.[\w.]+\s*=[\s(\\]*torch\.\w+\("
    SCOPE = Scope.CLASS
    COVERS = ("M9", "M10")
    VALID = (
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self, device):\n"
        "        self.mask = torch.ones(2, device=device)\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self):\n"
        "        self.w = torch.nn.Parameter(torch.ones(2))\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.mask = torch.ones(2)\n\n"
        "    def forward(self, x):\n        return x * self.mask.to(x.device)\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.mask = torch.Tensor()\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.grid = torch.zeros(2)\n\n"
        "    def forward(self, x):\n        b = torch.zeros(x.size(0), 2)\n        b[0] = self.grid\n        return b.to(x.device)\n",
        "import torch\n\nclass Data:\n    def __init__(self):\n        self.x = torch.ones(2)\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.rates = torch.linspace(0, 1, 4).tolist()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn as nn\n\nclass M(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.mask = torch.tril(torch.ones(4, 4)).view(1, 4, 4)\n\n"
            "    def forward(self, x):\n        return x * self.mask\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields tensors assigned to plain attributes in a module's constructor."""
        for statement in module.nodes(ast.Assign):
            name = dotted(statement.targets[0]) or ""
            function = module.function(statement)
            if not name.startswith("self.") or getattr(function, "name", "") != "__init__":
                continue
            holder = next((a for a in module.ancestors(statement) if isinstance(a, ast.ClassDef)), None)
            if holder is None or not _is_module(module, holder) or not _makes_tensor(module, statement.value):
                continue
            if not _is_moved(holder, name) and not _only_copied(holder, name):
                attribute = name.removeprefix("self.")
                note = f'self.register_buffer("{attribute}", ..., persistent=False) moves with the module'
                yield Match(*module.span(statement), note=note)


def _is_module(module: Module, holder: ast.ClassDef) -> bool:
    names = (module.names.qualify(base) or dotted(base) or "" for base in holder.bases)
    return any(name in ("torch.nn.Module", "nn.Module", "torch.nn.modules.module.Module") for name in names)


def _makes_tensor(module: Module, value: ast.expr) -> bool:
    """Whether an expression is a new CPU tensor, perhaps reshaped."""
    while isinstance(value, ast.Call):
        if keyword(value, "device") is not None:
            return False
        if module.qualify(value.func) in _FACTORIES:
            if not value.args and not value.keywords:
                return False
            inner = value.args[0] if value.args else None
            return not isinstance(inner, ast.Call) or keyword(inner, "device") is None
        if not isinstance(value.func, ast.Attribute) or value.func.attr not in _SHAPERS:
            return False
        value = value.func.value
    return False


def _only_copied(holder: ast.ClassDef, name: str) -> bool:
    """Whether the attribute is read to fill another tensor and for its size only, so that the other one must move."""
    parents = {child: node for node in ast.walk(holder) for child in ast.iter_child_nodes(node)}
    read = [
        parents[n]
        for n in ast.walk(holder)
        if dotted(n) == name and isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
    ]
    used = [p for p in read if not (isinstance(p, ast.Attribute) and p.attr in ("size", "shape"))]
    used = [p for p in used if not (isinstance(p, ast.Subscript) and isinstance(p.ctx, ast.Store))]
    return bool(used) and all(isinstance(p, ast.Assign) and isinstance(p.targets[0], ast.Subscript) for p in used)


def _is_moved(holder: ast.ClassDef, name: str) -> bool:
    """Whether some method takes the attribute to a device, or makes it anew, by itself."""
    assigned = 0
    for node in ast.walk(holder):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("to", "cuda", "type_as")
        ):
            if any(dotted(n) == name for n in ast.walk(node.func.value) if isinstance(n, ast.Attribute)):
                return True
        elif isinstance(node, ast.Assign):
            assigned += any(dotted(target) == name for target in node.targets)
    return assigned > 1
