"""TPU901: an optimizer built before its model is moved to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted
from tools.code.literals import DEVICE_WORD
from tools.code.module import Module
from tools.code.rewrite import alone
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class MoveBeforeOptimizer(PythonRule):
    """``model.to(device)`` after the optimizer took the model's parameters.

    On CUDA the move changes the parameters in place. On TorchTPU it makes new ones, so the optimizer goes on training the
    old ones, silently, and the loss does not fall. The move is put in front where both statements stand in one block and
    nothing between them touches the model or what the move needs; otherwise both lines are reported, as they are where
    the move stands under a condition or the optimizer is given a list that a loop gathered.

    Not covered: moves and optimizers in different functions.
    """

    ID = "TPU901"
    NAME = "move-before-optimizer"
    FAMILY = "M"
    MESSAGE = "the optimizer is built before the model is moved, and on a TPU the move makes new parameters"
    WHOLE_WORDS = True
    TRIGGERS = ("parameters()", "named_parameters()")
    REQUIRES = ("optim",)
    COVERS = ("M1", "E7", "M4")
    VALID = (
        "import torch\nmodel.to(device)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel.to(torch.bfloat16)\n",
        "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nother.to(device)\n",
        "import torch\nfor p in model.parameters():\n    pass\nmodel.to(device)\n",
        "import torch\nsize = sum(p.numel() for p in net.parameters())\n"
        "optimizer = torch.optim.SGD([p for p in other.parameters()])\nnet.to(device)\n",
    )
    INVALID = (
        Invalid(
            "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nloss = torch.nn.MSELoss()\n"
            "model = model.to(device)  # now\nprint(model)\n",
            "import torch\nmodel = model.to(device)  # now\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "loss = torch.nn.MSELoss()\nprint(model)\n",
        ),
        Invalid(
            "from torch.optim import AdamW\n\nclass T:\n    def __init__(self, net, device):\n        self.net = net\n"
            "        self.optimizer = AdamW(self.net.parameters())\n        self.net.to(device)\n",
            "from torch.optim import AdamW\n\nclass T:\n    def __init__(self, net, device):\n        self.net = net\n"
            "        self.net.to(device)\n        self.optimizer = AdamW(self.net.parameters())\n",
        ),
        Invalid(
            "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ndevice = choose()\nmodel.to(device)\n",
            None,
        ),
        Invalid(
            "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel = wrap(model)\n"
            "model.to(device)\n",
            None,
        ),
        Invalid(
            "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nif args.cuda:\n    model.cuda()\n",
            None,
        ),
        Invalid(
            "import torch\n\ndef main(net, lr, device):\n    groups = []\n"
            "    for name, value in dict(net.named_parameters()).items():\n"
            "        if value.requires_grad:\n            groups += [{'params': [value], 'lr': lr}]\n"
            "    if lr > 1:\n        optimizer = torch.optim.Adam(groups)\n"
            "    else:\n        optimizer = torch.optim.SGD(groups)\n    if device:\n        net.to(device)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields optimizers whose model is moved later in the same block."""
        for call in module.nodes(ast.Call):
            statement = module.statement(call)
            block = _block(module, statement)
            if not block:
                continue
            if isinstance(statement, ast.Assign) and _is_optimizer(module, call):
                for owner in sorted(_owners(call)):
                    yield from self._before_move(module, call, statement, block, owner)
            elif (giver := _owner(call)) and (built := _built_later(module, statement, block)):
                yield from self._before_move(module, *built, block, giver)

    def _before_move(
        self, module: Module, call: ast.Call, statement: ast.stmt, block: list[ast.stmt], owner: str
    ) -> Iterator[Match]:
        for later in block[block.index(statement) + 1 :]:
            move = next((each for each in _within(later) if _moves(each, owner)), None)
            if move is None:
                continue
            whole = move is later and call in ast.walk(statement) and owner in _owners(call)
            yield (
                self._match(module, call, statement, move, block, owner) if whole else _told(module, call, move, owner)
            )
            return

    def _match(
        self, module: Module, call: ast.Call, statement: ast.stmt, move: ast.stmt, block: list[ast.stmt], owner: str
    ) -> Match:
        between = block[block.index(statement) : block.index(move)]
        start, end = module.span(call)
        independent = not any(_touches(s, owner, move) for s in between[1:]) and not _binds(between[0], _used(move))
        if independent and alone(module, move) and alone(module, statement):
            return Match(start, end, fix=_swap(module, statement, move))
        return _told(module, call, move, owner)


def _told(module: Module, call: ast.Call, move: ast.stmt, owner: str) -> Match:
    start, end = module.span(call)
    lines = f"line {call.lineno} builds the optimizer, line {move.lineno} moves {owner}"
    return Match(start, end, grade=Grade.ADVICE, note=f"{lines}; move it before the optimizer is built")


def _built_later(module: Module, statement: ast.stmt, block: list[ast.stmt]) -> tuple[ast.Call, ast.stmt] | None:
    """The first optimizer, and its statement of the block, that is given what a statement gathers."""
    gathered = _gathered(statement)
    for later in block[block.index(statement) + 1 :]:
        for call in (node for part in _within(later) for node in ast.walk(part) if isinstance(node, ast.Call)):
            given = {node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)}
            if (given - _bound_inside(call)) & gathered and _is_optimizer(module, call):
                return call, later
    return None


def _gathered(statement: ast.stmt) -> set[str]:
    """Names that a statement binds, or lists that it adds to."""
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in ("append", "extend") and isinstance(node.value, ast.Name):
            found.add(node.value.id)
    return found - _bound_inside(statement)


def _bound_inside(node: ast.AST) -> set[str]:
    """Names that comprehensions bind for themselves."""
    targets = [part.target for part in ast.walk(node) if isinstance(part, ast.comprehension)]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _within(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in its blocks, in their order; what a function or class holds runs elsewhere."""
    yield statement
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _within(child)
        elif isinstance(child, ast.ExceptHandler):
            for part in child.body:
                yield from _within(part)


def _block(module: Module, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = module.parent(statement) or module.tree
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _is_optimizer(module: Module, call: ast.Call) -> bool:
    name = module.qualify(call.func) or ""
    return name.startswith("torch.optim.") and not name.startswith(
        ("torch.optim.lr_scheduler", "torch.optim.swa_utils")
    )


def _owners(call: ast.Call) -> set[str]:
    """Names whose ``parameters()`` the optimizer is given."""
    return {name for node in ast.walk(call) if isinstance(node, ast.Call) and (name := _owner(node))}


def _owner(call: ast.Call) -> str | None:
    """The name whose parameters a call hands out."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("parameters", "named_parameters"):
        return dotted(call.func.value)
    return None


def _moves(statement: ast.stmt, owner: str) -> bool:
    """Whether a statement is ``owner.to(device)``, also assigned back."""
    if isinstance(statement, ast.Assign):
        if len(statement.targets) != 1 or dotted(statement.targets[0]) != owner:
            return False
        value: ast.expr = statement.value
    elif isinstance(statement, ast.Expr):
        value = statement.value
    else:
        return False
    if (
        not isinstance(value, ast.Call)
        or not isinstance(value.func, ast.Attribute)
        or dotted(value.func.value) != owner
    ):
        return False
    return value.func.attr == "cuda" or (value.func.attr == "to" and bool(value.args) and _is_device(value.args[0]))


def _is_device(argument: ast.expr) -> bool:
    if isinstance(argument, ast.Constant):
        return isinstance(argument.value, str)
    name = dotted(argument)
    return name is not None and DEVICE_WORD.search(name.rpartition(".")[2]) is not None


def _touches(statement: ast.stmt, owner: str, move: ast.stmt) -> bool:
    mentions = any(isinstance(n, ast.Name | ast.Attribute) and dotted(n) == owner for n in ast.walk(statement))
    jumps = isinstance(statement, ast.Return | ast.Raise | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
    return mentions or jumps or _binds(statement, _used(move))


def _used(move: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(move) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _binds(statement: ast.stmt, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in names for n in ast.walk(statement))


def _swap(module: Module, statement: ast.stmt, move: ast.stmt) -> Fix:
    source = module.source
    first, last = source.starts[move.lineno - 1], move.end_lineno or move.lineno
    end = source.starts[last] if last < len(source.starts) else len(source.text)
    lines = source.text[first:end]
    if not lines.endswith(("\n", "\r")):
        lines += source.newline
    place = source.starts[statement.lineno - 1]
    return Fix((Edit(place, place, lines), Edit(first, end, "")))
