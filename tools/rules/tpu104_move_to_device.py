"""TPU104: ``.cuda()`` on a tensor or module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import spread
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import DEVICE_WORD, cuda_moves
from tools.code.module import Module
from tools.code.rewrite import alone, choose_by_test, cuda_test, device, parenthesised
from tools.findings import Grade
from tools.project import Trait
from tools.rules.base import Invalid, Match, PythonRule, Valid

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


_STARRED = "a device may be among the star arguments; move to the program's device by hand"


class MoveToDevice(PythonRule):
    """``x.cuda()`` becomes ``x.to(device)`` with the device the file resolves.

    ``non_blocking`` and other keywords stay. A device variable given to ``.cuda(device)`` is given to ``.to``; an index
    (``.cuda(rank)``) stays on CUDA and is dropped elsewhere, where one process has one device.

    Where the repository has a class with a ``cuda`` method of its own the fix is graded unsafe, because the call may mean
    that one.
    """

    ID = "TPU104"
    NAME = "move-to-device"
    FAMILY = "A"
    MESSAGE = ".cuda() moves to CUDA whatever the program's device is"
    WHOLE_WORDS = True
    TRIGGERS = (".cuda(",)
    COVERS = ("A1", "A2")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    x = x.cuda()\n",
        Valid("x = x.to(device)\n"),
        "import torch\nstate = torch.load(path, map_location=lambda storage, _: storage.cuda())\n",
        "import torch\nif x.device.type == 'cuda':\n    y = y.cuda()\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\nmodel = Net().cuda()\nx = x.cuda(non_blocking=True)\n",
            f"import torch\n\n{_TOP}\nmodel = Net().to(DEVICE_TYPE)\nx = x.to(DEVICE_TYPE, non_blocking=True)\n",
            count=2,
        ),
        Invalid(
            "import torch\ndevice = torch.device(torch.accelerator.current_accelerator().type "
            "if torch.accelerator.is_available() else 'cpu')\nx = x.cuda( )\n",
            "import torch\ndevice = torch.device(torch.accelerator.current_accelerator().type "
            "if torch.accelerator.is_available() else 'cpu')\nx = x.to(device )\n",
        ),
        Invalid(
            "import torch\nmodel.cuda(args.gpu)\n",
            f"import torch\n\n{_TOP}if torch.cuda.is_available():\n    model.cuda(args.gpu)\nelse:\n    model.to(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\nmodel = model.cuda(args.gpu)\n",
            f"import torch\n\n{_TOP}"
            "model = model.cuda(args.gpu) if torch.cuda.is_available() else model.to(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\nx = x.cuda(0)\n",
            f'import torch\n\n{_TOP}x = x.to("cuda:0" if torch.cuda.is_available() else DEVICE_TYPE)\n',
        ),
        Invalid(
            "import torch\ny = [x.cuda(), x.cuda(*a)]\n",
            f"import torch\n\n{_TOP}y = [x.to(DEVICE_TYPE), x.cuda(*a)]\n",
            count=2,
        ),
        Invalid(
            "import torch\nx = f(x).cuda(rank, non_blocking=True)\n",
            f"import torch\n\n{_TOP}"
            'x = f(x).to(f"cuda:{rank}" if torch.cuda.is_available() else DEVICE_TYPE, non_blocking=True)\n',
        ),
        Invalid("import torch\nx = x.cuda(device=device)\n", "import torch\nx = x.to(device=device)\n"),
        Invalid(
            "import torch\nclass Batch:\n    def cuda(self):\n        return self\nb = b.cuda()\n",
            f"import torch\n\n{_TOP}class Batch:\n    def cuda(self):\n        return self\nb = b.to(DEVICE_TYPE)\n",
            unsafe=True,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields ``.cuda(...)`` calls off the CUDA-only path."""
        calls = [call for call in cuda_moves(module) if not on_cuda_path(module, call)]
        own = bool(calls) and module.project.has(Trait.OWN_CUDA)
        note = "a class of this repository has a cuda() method of its own, which this call may mean" if own else None
        for call in calls:
            if spread(call):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_STARRED)
                continue
            yield Match(*module.span(call), fix=_fix(module, call), grade=Grade.UNSAFE if own else None, note=note)


def _fix(module: Module, call: ast.Call) -> Fix:
    function = call.func
    assert isinstance(function, ast.Attribute)
    _, after_name = module.span(function)
    rename = Edit(after_name - len("cuda"), after_name, "to")
    argument = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if argument is not None and _is_device(argument):
        return Fix((rename,))
    name, edits = device(module, call)
    if argument is None or (isinstance(argument, ast.Constant) and argument.value is None and call.args):
        if argument is not None:
            return Fix((rename, module.replace(argument, name), *edits))
        opening = module.source.text.index("(", after_name) + 1
        separator = ", " if call.keywords else ""
        return Fix((rename, Edit(opening, opening, name + separator), *edits))
    if dotted(argument) and (dotted(argument) or "").endswith("gpu") and dotted(function.value):
        # `.cuda(None)` means the current device, so an index that may be None cannot go into an f-string.
        statement = module.parent(call)
        if isinstance(statement, ast.Expr) and alone(module, statement):
            other = f"{module.text(function.value)}.to({name})"
            fix = choose_by_test(module, statement, [(f"if {cuda_test(module)}:", ""), ("else:", other)])
            return Fix((*fix.edits, *edits))
        text = f"{module.text(call)} if {cuda_test(module)} else {module.text(function.value)}.to({name})"
        return Fix((module.replace(call, parenthesised(module, call, text)), *edits))
    if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
        chosen = f'"cuda:{argument.value}" if {cuda_test(module)} else {name}'
        return Fix((rename, module.replace(argument, chosen), *edits))
    chosen = f'f"cuda:{{{module.text(argument)}}}" if {cuda_test(module)} else {name}'
    return Fix((rename, module.replace(argument, chosen), *edits))


def _is_device(argument: ast.expr) -> bool:
    name = dotted(argument)
    return name is not None and bool(DEVICE_WORD.search(name.rpartition(".")[2])) and not name.endswith("_id")
