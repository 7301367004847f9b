"""TPU105: tensors and conversions by the legacy types of ``torch.cuda``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_api import handled_by
from tools.code.cuda_calls import editable, uses
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import legacy_type
from tools.code.module import Module
from tools.code.rewrite import AVAILABLE, CUDA_AVAILABLE, device, import_edits, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
_NOTE = "a type is handed on; create tensors with dtype= and device= where it is used"


class ReplaceLegacyType(PythonRule):
    """``torch.cuda.FloatTensor(...)`` and ``.type(torch.cuda.FloatTensor)`` exist for CUDA alone.

    A tensor is made by the CPU type of the same name and moved to the resolved device, which gives the same values; a
    conversion becomes ``.to(device, dtype)``. ``Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`` becomes
    the CPU type, with the choice kept in a device that every use moves to.

    Not covered: a type handed to other functions, chosen in an ``if`` statement, or compared as a string.
    """

    ID = "TPU105"
    NAME = "replace-legacy-type"
    FAMILY = "A"
    MESSAGE = "the legacy tensor types of torch.cuda exist for CUDA alone"
    WHOLE_WORDS = True
    TRIGGERS = (
        "cuda",
        "FloatTensor",
        "DoubleTensor",
        "HalfTensor",
        "BFloat16Tensor",
        "LongTensor",
        "IntTensor",
        "ByteTensor",
        "BoolTensor",
    )
    REQUIRES = ("cuda", "|".join(_DTYPES))
    PATTERN = r"cuda\.\w+Tensor|import \w+Tensor"
    SCOPE = Scope.FILE
    COVERS = ("A16",)
    VALID = (
        "import torch\nx = torch.FloatTensor([1.0])\ny = x.type(torch.FloatTensor)\n",
        "import torch\nif torch.cuda.is_available():\n    x = torch.cuda.FloatTensor(3)\n",
        "import torch\nprint(isinstance(x, torch.cuda.FloatTensor))\n",
    )
    INVALID = (
        Invalid(
            "import torch\nx = torch.cuda.FloatTensor([1.0, 2.0])\n",
            f"import torch\n\n{_TOP}x = torch.FloatTensor([1.0, 2.0]).to(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\ny = x.type(torch.cuda.LongTensor)\nz = x.type('torch.cuda.FloatTensor')\n",
            f"import torch\n\n{_TOP}y = x.to(DEVICE_TYPE, torch.int64)\nz = x.to(DEVICE_TYPE, torch.float32)\n",
            count=2,
        ),
        Invalid(
            "import torch\ncuda = True\nTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor\n"
            "a = Tensor(3, 4).fill_(1.0)\nb = imgs.type(Tensor)\n",
            f"import torch\n\n{_TOP}cuda = True\nTensor = torch.FloatTensor\n"
            "tensor_device = DEVICE_TYPE if cuda else 'cpu'\n"
            "a = Tensor(3, 4).to(tensor_device).fill_(1.0)\nb = imgs.to(tensor_device, torch.float32)\n",
        ),
        Invalid(
            "import torch\ndef f(x):\n    F = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor\n"
            "    L = torch.cuda.LongTensor if x.is_cuda else torch.LongTensor\n    return F(3) + L(3)\n",
            "import torch\ndef f(x):\n    F = torch.FloatTensor\n    tensor_device = x.device\n"
            "    L = torch.LongTensor\n    return F(3).to(tensor_device) + L(3).to(tensor_device)\n",
            count=2,
        ),
        Invalid(
            "import torch\nTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor\n"
            "make(Tensor)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields constructors, conversions and choices of a CUDA type off the CUDA-only path."""
        for node, name in uses(module, handled_by(self.ID)):
            call = module.parent(node)
            if isinstance(call, ast.Call) and call.func is node:
                place, edits = device(module, call)
                end = module.span(call)[1]
                new = module.replace(node, spell(module, f"torch.{name}"))
                yield Match(*module.span(call), fix=Fix((new, Edit(end, end, f".to({place})"), *edits)))
        for call in module.nodes(ast.Call):
            name_of = _conversion(module, call)
            if name_of and not on_cuda_path(module, call) and editable(module, call):
                place, edits = device(module, call)
                yield Match(*module.span(call), fix=Fix((*_moved(module, call, place, name_of), *edits)))
        declared: dict[tuple[ast.AST | None, str], str] = {}
        for choice in sorted(module.nodes(ast.IfExp), key=module.span):
            kind = legacy_type(module, choice.body)
            if kind and not on_cuda_path(module, choice) and module.qualify(choice.orelse) == f"torch.{kind}":
                fix = _choice(module, choice, kind, declared)
                grade, note = (None, None) if fix else (Grade.ADVICE, _NOTE)
                yield Match(*module.span(choice), fix=fix, grade=grade, note=note)


def _conversion(module: Module, call: ast.Call) -> str | None:
    """The legacy type a ``.type(...)`` call converts to."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "type" and len(call.args) == 1:
        return legacy_type(module, call.args[0])
    return None


def _moved(module: Module, call: ast.Call, place: str, name: str) -> list[Edit]:
    assert isinstance(call.func, ast.Attribute)
    after = module.span(call.func)[1]
    dtype = spell(module, f"torch.{_DTYPES[name]}")
    return [
        Edit(after - len("type"), after, "to"),
        module.replace(call.args[0], f"{place}, {dtype}"),
        *import_edits(module),
    ]


def _choice(
    module: Module, choice: ast.IfExp, name: str, declared: dict[tuple[ast.AST | None, str], str]
) -> Fix | None:
    """Turns ``T = torch.cuda.X if test else torch.X`` and every use of ``T`` around, or nothing of it.

    Args:
        module: the file.
        choice: the conditional expression.
        name: the type.
        declared: devices that earlier choices of a block have declared, by block and name; a second one with the same
            value shares it.
    """
    assignment = module.parent(choice)
    if not isinstance(assignment, ast.Assign) or len(assignment.targets) != 1:
        return None
    variable = dotted(assignment.targets[0])
    if variable is None or not _only_assignment(module, variable):
        return None
    used = [n for n in module.walk_all if isinstance(n, ast.Name | ast.Attribute) and dotted(n) == variable]
    parents = {child: parent for parent in module.walk_all for child in ast.iter_child_nodes(parent)}
    place = f"{variable.rpartition('.')[0]}.tensor_device".lstrip(".")
    if re.search(r"\btensor_device\b", module.source.text):
        return None
    edits: list[Edit] = []
    for node in used:
        parent = parents[node]
        if isinstance(parent, ast.Call) and parent.func is node:
            end = module.span(parent)[1]
            edits.append(Edit(end, end, f".to({place})"))
        elif isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") == "type" and parent.args == [node]:
            edits += _moved(module, parent, place, name)
        elif node is not assignment.targets[0]:
            return None
    value, tops = _value(module, assignment, choice)
    block = (module.parent(assignment), place)
    new = block not in declared
    if declared.setdefault(block, value) != value or len(declared) > 1:
        return None
    edits.append(module.replace(choice, module.text(choice.orelse)))
    if new:
        edits.append(_declaration(module, assignment, f"{place} = {value}"))
    return Fix(tuple({*edits, *tops}))


def _only_assignment(module: Module, variable: str) -> bool:
    return len(re.findall(rf"(?<![\w.]){re.escape(variable)}\s*=(?!=)", module.source.text)) == 1


def _value(module: Module, assignment: ast.Assign, choice: ast.IfExp) -> tuple[str, list[Edit]]:
    """The device that the choice of a type stood for, as text, and the edits it needs."""
    test = choice.test
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        return f"{module.text(test.value)}.device", []
    name, edits = device(module, assignment)
    if isinstance(test, ast.Call) and module.qualify(test.func) in (CUDA_AVAILABLE, AVAILABLE):
        return name, edits
    name = f"({name})" if " if " in name else name
    return f"{name} if {module.text(test)} else 'cpu'", edits


def _declaration(module: Module, assignment: ast.Assign, line: str) -> Edit:
    start = module.source.starts[assignment.lineno - 1]
    margin = module.source.text[start : module.span(assignment)[0]]
    end = module.span(assignment)[1]
    return Edit(end, end, f"{module.source.newline}{margin}{line}")
