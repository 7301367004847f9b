"""TPU103: a device written as the literal ``"cuda"``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import TYPE_TAKERS, cuda_moves, device_literals, index_text
from tools.code.module import Module, string
from tools.code.rewrite import cuda_test, device, device_type, device_type_expression, import_edits, parenthesised
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Valid

_AMP_STATE = frozenset(
    f"torch.{name}"
    for name in ("get_autocast_dtype", "is_autocast_enabled", "set_autocast_dtype", "set_autocast_enabled")
)
_AMP = (
    "without CUDA the literal switches mixed precision off, and the resolved device would switch it on for the CPU; "
    "decide what the CPU shall do"
)
_COMPARED = "the variable is only compared with, and the resolved device would make the comparison hold for the CPU"
_DEFINED = re.compile(r"^(?:class |def |async def )?(\w+)", re.MULTILINE)
_NO_TORCH = (
    "the file does not import torch, and no other is seen to import from it: the device may be another program's"
)
_HEADER = "DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "


class ResolveDeviceLiteral(PythonRule):
    """``"cuda"``, ``"cuda:0"`` or ``f"cuda:{rank}"`` where a device is meant.

    Such places are ``.to``, ``device=``, ``torch.device``, ``map_location``, and a variable, parameter default, option or
    configuration key named after a device.

    The device is resolved once per file through ``torch.accelerator`` and named; a variable of the file that already
    resolves it is used. An index that a rank gives stays on CUDA, because elsewhere one process has one device; a literal
    second device (``"cuda:1"``) is left to a person.

    Not covered: comparisons (TPU108), device types given to autocast (TPU301), strings whose place does not say that they
    are devices.
    """

    ID = "TPU103"
    NAME = "resolve-device-literal"
    FAMILY = "A"
    MESSAGE = "the device is the literal 'cuda'; resolve it once through torch.accelerator"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A1", "A2", "A15", "A20", "A18")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    x = torch.ones(2, device='cuda')\n",
        "if device == 'cuda':\n    pass\n",
        "names = ['cuda', 'cpu']\nprint('cuda')\n",
        "@_custom_op('lib::f', mutates_args=(), device_types='cuda')\ndef f(x):\n    return x\n",
        "import torch\nwith torch.random.fork_rng(devices=cuda_devices, device_type='cuda'):\n    f()\n",
        "import torch\ndef withCUDA(f):\n    return mark(f, device='cuda')\n",
        "import torch\nfor i in range(torch.cuda.device_count()):\n    x = x.to(f'cuda:{i}')\n",
        "import torch\nds = [torch.device(f'cuda:{i}') for i in range(torch.cuda.device_count())]\n",
        "import torch\nop = torch.library.custom_op('lib::f', f, mutates_args=(), device_types='cuda')\n",
        "import torch\nclass Data:\n    def cuda(self, device='cuda'):\n        return self.apply(lambda x: x.cuda(device))\n",
        "import torch\nclass CUDAAccelerator(Accelerator):\n    def setup(self):\n        self.device = 'cuda'\n",
        "device = 'cuda' if is_torch_cuda_available() else 'cpu'\n",
        "if isinstance(accelerator, CUDAAccelerator):\n    device = 'cuda'\n",
        Valid("import torch\n\n\ndef test():\n    if device.type == 'cuda':\n        y = x.to('cuda')\n"),
    )
    INVALID = (
        Invalid(
            "import torch\ndevice = 'cuda'  # or 'cpu'\n",
            "import torch\n"
            "device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'  # or 'cpu'\n",
        ),
        Invalid(
            'import torch\n\nx = torch.ones(2, device="cuda")\ny = x.to("cuda:0", torch.bfloat16)\n',
            f'import torch\n\n{_HEADER}"cpu"\n\nx = torch.ones(2, device=DEVICE_TYPE)\n'
            'y = x.to(f"{DEVICE_TYPE}:0", torch.bfloat16)\n',
            count=2,
        ),
        Invalid(
            "import torch\n\ndef load(path, device='cuda'):\n    return torch.load(path, map_location='cuda')\n",
            f'import torch\n\n{_HEADER}"cpu"\n\n'
            "def load(path, device=DEVICE_TYPE):\n    return torch.load(path, map_location=DEVICE_TYPE)\n",
            count=2,
        ),
        Invalid(
            "import torch\nrank = 0\ndevice = f'cuda:{rank}'\n",
            f'import torch\n\n{_HEADER}"cpu"\nrank = 0\n'
            "device = f'cuda:{rank}' if torch.cuda.is_available() else DEVICE_TYPE\n",
        ),
        Invalid("import torch\ny = x.to('cuda:1')\n", None),
        Invalid(
            "import torch\n\n\nclass Scaler:\n    def __init__(self, device='cuda'):\n"
            "        self.scaler = torch.amp.GradScaler(device=device, enabled=torch.device(device).type in ('cpu', 'cuda'))\n",
            None,
        ),
        Invalid(
            "def count(memory):\n    if is_npu():\n        device_type = 'npu'\n    else:\n        device_type = 'cuda'\n"
            "    return len([d for d in memory if d.type == device_type])\n",
            None,
        ),
        Invalid(
            "import torch\nfrom functools import partial\n\n\ndef context(device_type='cuda'):\n"
            "    return partial(torch.amp.autocast, device_type=device_type)\n",
            None,
        ),
        Invalid(
            "import torch\n\n\ndef dtype(device='cuda'):\n    return torch.get_autocast_dtype(device)\n",
            None,
        ),
        Invalid(
            "parser.add_argument('--device', default='cuda')\n",
            f"import torch\n\n{_HEADER}\"cpu\"\n\nparser.add_argument('--device', default=DEVICE_TYPE)\n",
            unsafe=True,
        ),
        Invalid(
            "import torch\nd = torch.device('cuda', rank)\n",
            f'import torch\n\n{_HEADER}"cpu"\n'
            "d = torch.device('cuda', rank) if torch.cuda.is_available() else torch.device(DEVICE_TYPE)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields CUDA device literals off the CUDA-only path."""
        places = [literal for literal in device_literals(module) if not on_cuda_path(module, literal)]
        alone = len(places) + sum(1 for call in cuda_moves(module) if not on_cuda_path(module, call)) == 1
        for literal in places:
            start, end = module.span(literal)
            index = index_text(module, literal)
            if index is not None and index.isdigit() and index != "0":
                note = "names a second device, but one process has one TPU; decide which device is meant"
                yield Match(start, end, grade=Grade.ADVICE, note=note)
                continue
            if _only_compared(module, literal):
                yield Match(start, end, grade=Grade.ADVICE, note=_COMPARED)
                continue
            if _only_for_amp(module, literal):
                yield Match(start, end, grade=Grade.ADVICE, note=_AMP)
                continue
            fix = Fix(tuple(self._edits(module, literal, index, alone)))
            if _is_apart(module):
                yield Match(start, end, fix=fix, grade=Grade.UNSAFE, note=_NO_TORCH)
                continue
            yield Match(start, end, fix=fix)

    def _edits(self, module: Module, literal: ast.expr, index: str | None, alone: bool) -> list[Edit]:
        call = _indexed_device(module, literal)
        if call is not None:
            return self._indexed(module, call)
        if alone and index is None and _assigned_at_top(module, literal):
            quote = module.text(literal)[0]
            text = parenthesised(module, literal, device_type_expression(module, quote))
            return [module.replace(literal, text), *import_edits(module)]
        name, edits = (device if index is None and _argument(module, literal) else device_type)(module, literal)
        if index is None:
            return [module.replace(literal, parenthesised(module, literal, name)), *edits]
        if string(literal) is not None:
            quote = module.text(literal)[0]
            name = name.replace('"cpu"', "'cpu'") if quote == '"' else name
            return [module.replace(literal, f"f{quote}{{{name}}}:{index}{quote}"), *edits]
        text = f"{module.text(literal)} if {cuda_test(module)} else {name}"
        return [module.replace(literal, parenthesised(module, literal, text)), *edits]

    def _indexed(self, module: Module, call: ast.Call) -> list[Edit]:
        name, edits = device_type(module, call)
        text = f"{module.text(call)} if {cuda_test(module)} else {module.text(call.func)}({name})"
        return [module.replace(call, parenthesised(module, call, text)), *edits]


def _is_apart(module: Module) -> bool:
    """Whether a file has nothing to do with torch, as it neither imports it nor is visibly imported by another."""
    if module.names.spelling("torch") is not None or "torch" in module.source.text:
        return False
    return module.project.imported_names.isdisjoint(_DEFINED.findall(module.source.text))


def _indexed_device(module: Module, literal: ast.expr) -> ast.Call | None:
    """The call ``torch.device("cuda", index)`` around a literal whose index is not written out as 0."""
    call = module.parent(literal)
    if not isinstance(call, ast.Call) or module.qualify(call.func) != "torch.device":
        return None
    index = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "index"), None)
    if index is None or (isinstance(index, ast.Constant) and index.value == 0):
        return None
    return call


def _only_compared(module: Module, literal: ast.expr) -> bool:
    """Whether a literal is given to a local variable that stands in comparisons and nowhere else."""
    statement, scope = module.parent(literal), module.function(literal)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if scope is None or not isinstance(target, ast.Name):
        return False
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)]
    compared = {id(side) for n in ast.walk(scope) if isinstance(n, ast.Compare) for side in (n.left, *n.comparators)}
    return bool(uses) and all(id(use) in compared for use in uses)


def _only_for_amp(module: Module, literal: ast.expr) -> bool:
    """Whether a literal is a parameter's default or a variable's value that goes to autocast or a scaler alone."""
    holder, scope = module.parent(literal), module.function(literal)
    name = None
    if isinstance(holder, ast.arguments):
        name, scope = _parameter_of(holder, literal), module.parent(holder)  # type: ignore[assignment]
    elif isinstance(holder, ast.Assign):
        name = dotted(holder.targets[0])
    if name is None:
        return False
    calls = (c for c in ast.walk(scope or module.tree) if isinstance(c, ast.Call) and _takes(c, name))
    uses = [used for c in calls if (used := _called(module, c)) != "torch.device"]
    return bool(uses) and all(used in TYPE_TAKERS or used in _AMP_STATE for used in uses)


def _called(module: Module, call: ast.Call) -> str:
    """The dotted name of what is called, or will be through ``functools.partial``."""
    name = module.names.qualify(call.func) or ""
    if name == "functools.partial" and call.args:
        return module.names.qualify(call.args[0]) or ""
    return name


def _takes(call: ast.Call, name: str) -> bool:
    return any(dotted(value) == name for value in (*call.args, *(k.value for k in call.keywords)))


def _parameter_of(arguments: ast.arguments, default: ast.expr) -> str | None:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return next((a.arg for a, d in pairs if d is default), None)


def _assigned_at_top(module: Module, literal: ast.expr) -> bool:
    parent = module.parent(literal)
    return isinstance(parent, ast.Assign) and module.parent(parent) is module.tree


def _argument(module: Module, literal: ast.expr) -> bool:
    """Whether the literal is handed to a call, where a ``torch.device`` does as well as a string."""
    parent = module.parent(literal)
    call = module.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return False
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return last in ("to", "to_empty") or (module.qualify(call.func) or "").startswith("torch.")
