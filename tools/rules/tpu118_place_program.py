"""TPU118: a training program that names no device at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted
from tools.code.module import Module
from tools.code.rewrite import alone, device_type
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_DEVICE = re.compile(r"\bdevice|\.to\(|\.cuda\b|\baccelerat|\bxla\b|\bmps\b|\bxm\.|\baccelerator\b|\bTrainer\b|fabric")
_MAKERS = frozenset(
    f"torch.{name}"
    for name in "zeros ones empty full arange linspace eye rand randn randint randperm tensor as_tensor from_numpy".split()
)
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class PlaceProgram(PythonRule):
    """A script that builds a model and an optimizer and runs both where tensors are born: on the CPU.

    Nothing in it breaks on a TPU, and nothing of it runs there. Where the script is in one file and every tensor that
    reaches the model or the loss comes from a constructor in view, the model and those tensors are moved to the
    accelerator, tensors made in ``forward`` follow its input, and what NumPy reads comes back first. On a machine without
    an accelerator nothing changes.

    Not covered: data from loaders, models from other files; those are reported.
    """

    ID = "TPU118"
    NAME = "place-program"
    FAMILY = "A"
    MESSAGE = "this program trains without naming a device, so it stays on the CPU"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = (".parameters()",)
    REQUIRES = ("optim",)
    SCOPE = Scope.FILE
    REASON = "programs that name no device run on the CPU wherever they are; found in public examples"
    VALID = (
        "import torch\nmodel = Net().to(device)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "import torch\nmodel = Net().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "import torch\ncount = sum(p.numel() for p in model.parameters())\n",
        "import torch\nclass T:\n    def f(self, model):\n        self.o = torch.optim.SGD(model.parameters(), lr=0.1)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn as nn\nfrom torch import optim\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self):\n        self.cell = nn.GRUCell(3, 4)\n\n    def forward(self, x):\n        state = torch.zeros(x.size(0), 4)\n        return self.cell(x, state)\n\n\n"
            "if __name__ == '__main__':\n    x = torch.from_numpy(data[1:])\n    y = torch.ones(3)\n    net = Net()\n"
            "    loss_function = nn.MSELoss()\n    optimizer = optim.SGD(net.parameters(), lr=0.1)\n"
            "    out = net(x)\n    loss = loss_function(out[:2], y)\n    show(out.detach().numpy())\n",
            f"import torch\nimport torch.nn as nn\nfrom torch import optim\n\n{_TOP}\n\nclass Net(nn.Module):\n"
            "    def __init__(self):\n        self.cell = nn.GRUCell(3, 4)\n\n"
            "    def forward(self, x):\n        state = torch.zeros(x.size(0), 4, device=x.device)\n"
            "        return self.cell(x, state)\n\n\n"
            "if __name__ == '__main__':\n    x = torch.from_numpy(data[1:]).to(DEVICE_TYPE)\n"
            "    y = torch.ones(3).to(DEVICE_TYPE)\n    net = Net()\n"
            "    loss_function = nn.MSELoss()\n    net.to(DEVICE_TYPE)\n"
            "    optimizer = optim.SGD(net.parameters(), lr=0.1)\n"
            "    out = net(x)\n    loss = loss_function(out[:2], y)\n    show(out.detach().cpu().numpy())\n",
        ),
        Invalid(
            "import torch\nfrom model import Net\nnet = Net()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
            "for x, y in loader:\n    net(x).backward()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the statement that builds the optimizer of such a program."""
        for call in module.nodes(ast.Call):
            model = _optimized(module, call)
            if model is None or not _made_before(module, statement := module.statement(call), model):
                continue
            if _DEVICE.search(module.source.text):
                return
            edits = _Program(module, model).edits(statement)
            start, end = module.span(statement)
            if edits is None:
                note = "move the model before the optimizer is built, and each batch, to one resolved device"
                yield Match(start, end, grade=Grade.ADVICE, note=note)
            else:
                yield Match(start, end, fix=Fix(tuple(edits)))


def _optimized(module: Module, call: ast.Call) -> str | None:
    """The model whose parameters a call of an optimizer takes."""
    if not (module.qualify(call.func) or "").startswith("torch.optim.") or not call.args:
        return None
    first = call.args[0]
    if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) and first.func.attr == "parameters":
        return first.func.value.id if isinstance(first.func.value, ast.Name) else None
    return None


def _made_before(module: Module, statement: ast.stmt, model: str) -> bool:
    block = getattr(module.parent(statement), "body", None)
    if not isinstance(block, list) or statement not in block:
        return False
    before = block[: block.index(statement)]
    return any(
        isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and [dotted(t) for t in s.targets] == [model]
        for s in before
    )


@dataclass
class _Program:
    """The whole script, as far as its tensors can be followed."""

    module: Module
    model: str
    losses: set[str] = field(default_factory=set)
    made: dict[str, list[ast.Call]] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)

    def edits(self, optimizer: ast.stmt) -> list[Edit] | None:
        """All edits that place the program, None where some tensor's origin is not in view."""
        if not alone(self.module, optimizer):
            return None
        self._read()
        forward = self._forward_edits()
        moved = self._argument_edits()
        if forward is None or moved is None:
            return None
        name, brought = device_type(self.module, optimizer)
        start = self.module.source.starts[optimizer.lineno - 1]
        margin = self.module.source.text[start : self.module.span(optimizer)[0]]
        line = f"{margin}{self.model}.to({name}){self.module.source.newline}"
        return [Edit(start, start, line), *moved, *forward, *self._numpy_edits(), *brought]

    def _read(self) -> None:
        for node in self.module.walk_all:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            name, value = dotted(node.targets[0]), node.value
            if name is None:
                continue
            if isinstance(value, ast.Call) and self._is_maker(value):
                self.made.setdefault(name, []).append(value)
            elif isinstance(value, ast.Call) and self._is_loss(value) and "." not in name:
                self.losses.add(name)
            elif self._computes(value):
                self.computed.add(name)

    def _is_maker(self, call: ast.Call) -> bool:
        return self.module.names.qualify(call.func) in _MAKERS

    def _is_loss(self, call: ast.Call) -> bool:
        name = self.module.names.qualify(call.func) or ""
        return name.startswith("torch.nn.") and name.endswith("Loss")

    def _computes(self, value: ast.expr) -> bool:
        """Whether a value is what the model or a loss gave."""
        calls = (n for n in ast.walk(value) if isinstance(n, ast.Call))
        return any(dotted(call.func) in {self.model, *self.losses} for call in calls)

    def _argument_edits(self) -> list[Edit] | None:
        used: dict[str, None] = {}
        calls = [n for n in self.module.walk_all if isinstance(n, ast.Call)]
        for call in (c for c in calls if dotted(c.func) in {self.model, *self.losses}):
            for argument in [*call.args, *(k.value for k in call.keywords)]:
                inner: ast.expr = argument
                while isinstance(inner, ast.Subscript):
                    inner = inner.value
                if isinstance(inner, ast.Constant) or (name := dotted(inner)) in self.computed or self._number(name):
                    continue
                if name is None or name not in self.made:
                    return None
                used[name] = None
        name, _ = device_type(self.module, self.module.tree.body[-1])
        ends = [self.module.span(call)[1] for made in used for call in self.made[made]]
        return [Edit(end, end, f".to({name})") for end in ends]

    def _number(self, name: str | None) -> bool:
        """Whether a name is only ever given plain numbers."""
        values = [
            node.value
            for node in self.module.walk_all
            if isinstance(node, ast.Assign) and name is not None and [dotted(t) for t in node.targets] == [name]
        ]
        return bool(values) and all(isinstance(value, ast.Constant) for value in values)

    def _forward_edits(self) -> list[Edit] | None:
        edits: list[Edit] = []
        own = {n.name for n in self.module.walk_all if isinstance(n, ast.ClassDef)}
        built = [
            n.value
            for n in self.module.walk_all
            if isinstance(n, ast.Assign) and [dotted(t) for t in n.targets] == [self.model]
        ]
        if not all(isinstance(value, ast.Call) and dotted(value.func) in own for value in built):
            return None
        for function in (n for n in self.module.walk_all if isinstance(n, ast.FunctionDef) and n.name == "forward"):
            makers = [n for n in ast.walk(function) if isinstance(n, ast.Call) and self._is_maker(n)]
            if not makers:
                continue
            given = function.args.args[1].arg if len(function.args.args) > 1 else None
            if given is None or not re.search(rf"\b{given}\.(size|shape)\b", self.module.text(function)):
                return None
            for call in makers:
                if (
                    any(k.arg is None for k in call.keywords)
                    or self.module.names.qualify(call.func) == "torch.from_numpy"
                ):
                    return None
                place = self.module.span(call)[1] - 1
                edits.append(Edit(place, place, f", device={given}.device"))
        return edits

    def _numpy_edits(self) -> list[Edit]:
        edits = []
        for node in self.module.walk_all:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
                place = self.module.span(node.func.value)[1]
                edits.append(Edit(place, place, ".cpu()"))
        return edits
