"""TPU401: the process group's backend written as ``"nccl"``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import device_type_operand
from tools.code.edits import Edit, Fix
from tools.code.guards import availability_calls, dotted, is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.older import is_for_older
from tools.code.rewrite import ask_accelerator, cuda_test, device, parenthesised, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DEFAULT = "torch.distributed.get_default_backend_for_device"
_WORD = re.compile(r"(?i)(^|_)backend$")
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_IMPORTS_TORCH = re.compile(r"^\s*(import|from) torch\b", re.MULTILINE)
_TABLE = "the table has no entry for other accelerators; take torch.distributed.get_default_backend_for_device for them"
_CALL = "torch.distributed.get_default_backend_for_device(DEVICE_TYPE)"


class ChooseBackend(PythonRule):
    """``"nccl"`` only carries CUDA tensors; ``torch.distributed`` knows the backend of each device.

    ``get_default_backend_for_device`` answers nccl for CUDA, gloo for the CPU and ``tpu_dist`` with TorchTPU loaded. It
    stands in for the literal in ``init_process_group``, ``new_group`` and in variables, parameter defaults, options and
    configuration keys called ``backend``, and for choices between nccl and gloo by CUDA's or NCCL's availability. A device
    list such as ``"cpu:gloo,cuda:nccl"`` stays on CUDA.

    Not covered: comparisons with "nccl" (true on CUDA only, as before) and lists of allowed choices.
    """

    ID = "TPU401"
    NAME = "choose-backend"
    FAMILY = "D"
    MESSAGE = "the process group's backend is nccl, which is for CUDA alone"
    WHOLE_WORDS = True
    TRIGGERS = ("nccl", "NCCL", "gloo")
    COVERS = ("D3", "D4", "D5", "D22")
    VALID = (
        "import torch\ntorch.distributed.init_process_group('gloo')\n",
        "if backend == 'nccl':\n    pass\nchoices = ['nccl', 'gloo']\n",
        "import torch\nif torch.cuda.is_available():\n    torch.distributed.init_process_group('nccl')\n",
        "import os\nos.environ['NCCL_DEBUG'] = 'INFO'\n",
        "def set_symmetric_memory(backend: Literal['NCCL'] = 'NCCL'):\n    pass\n",
        "import json\nbody = json.dumps({'backend': 'nccl'})\n",
        "parser.add_argument('--dist-backend', choices=['nccl', 'gloo'], help='nccl or gloo')\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.distributed as dist\n\ndist.init_process_group('nccl', rank=0)\n"
            'dist.init_process_group(backend="nccl")\n',
            f"import torch\nimport torch.distributed as dist\n\n{_TOP}\n"
            "dist.init_process_group(dist.get_default_backend_for_device(DEVICE_TYPE), rank=0)\n"
            "dist.init_process_group(backend=dist.get_default_backend_for_device(DEVICE_TYPE))\n",
            count=2,
        ),
        Invalid("import torch\nbackend = 'nccl'  # or gloo\n", f"import torch\n\n{_TOP}backend = {_CALL}  # or gloo\n"),
        Invalid(
            "import torch\n\ndef setup(rank, backend: str = 'nccl'):\n    pass\n",
            f"import torch\n\n{_TOP}\ndef setup(rank, backend: str = {_CALL}):\n    pass\n",
        ),
        Invalid(
            "import torch\nparser.add_argument('--dist-backend', default='nccl', type=str)\n",
            f"import torch\n\n{_TOP}parser.add_argument('--dist-backend', default={_CALL}, type=str)\n",
        ),
        Invalid(
            "import torch\nimport torch.distributed as dist\n"
            "backend = 'gloo' if not torch.cuda.is_available() else 'nccl'\n"
            "dist.init_process_group('nccl' if dist.is_nccl_available() else 'gloo')\n",
            f"import torch\nimport torch.distributed as dist\n\n{_TOP}"
            "backend = dist.get_default_backend_for_device(DEVICE_TYPE)\n"
            "dist.init_process_group(dist.get_default_backend_for_device(DEVICE_TYPE))\n",
            count=2,
        ),
        Invalid(
            "import torch\nif torch.cuda.is_available():\n    backend = 'nccl'\nelse:\n    backend = 'gloo'\n"
            "other_backend = 'nccl' if device.type == 'cuda' else 'gloo'\n"
            "third_backend = 'nccl' if torch.cuda.is_available() and not args.cpu else 'gloo'\n",
            f"import torch\n\n{_TOP}if torch.cuda.is_available():\n    backend = 'nccl'\nelse:\n    backend = {_CALL}\n"
            "other_backend = torch.distributed.get_default_backend_for_device(device.type)\n"
            f"third_backend = {_CALL} if torch.accelerator.is_available() and not args.cpu else 'gloo'\n",
            count=3,
        ),
        Invalid(
            "import torch\ntorch.distributed.init_process_group('cpu:gloo,cuda:nccl')\n",
            f"import torch\n\n{_TOP}torch.distributed.init_process_group('cpu:gloo,cuda:nccl' if torch.cuda.is_available() "
            f"else {_CALL})\n",
        ),
        Invalid("import torch\nbackends = {'cuda': 'nccl', 'xpu': 'ccl'}\nb = backends.get(kind, 'gloo')\n", None),
        Invalid(
            "from torch.distributed import init_process_group\nconfig = {'backend': 'nccl'}\n",
            "import torch\nfrom torch.distributed import init_process_group\n\n"
            f"{_TOP}config = {{'backend': {_CALL}}}\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields places that choose NCCL, or gloo for want of CUDA."""
        for literal in module.nodes(ast.Constant):
            text = string(literal) or ""
            if text == "nccl" and _in_table(module, literal):
                yield Match(*module.span(literal), grade=Grade.ADVICE, note=_TABLE)
                continue
            if (
                text == "nccl"
                or (text == "NCCL" and _handed_over(module, literal))
                or re.search(r"\bcuda:nccl\b", text)
            ):
                place, edits = _nccl(module, literal, text)
            elif text == "gloo":
                place, edits = literal, _gloo(module, literal)
            else:
                continue
            if edits and _is_of_torch(module, literal):
                yield Match(*module.span(place), fix=Fix(tuple(edits)))


def _in_table(module: Module, literal: ast.expr) -> bool:
    """Whether the literal is CUDA's entry in a table of backends by device, in which the accelerator has none."""
    table = module.parent(literal)
    if not isinstance(table, ast.Dict):
        return False
    keys = {string(key) for key in table.keys}
    return "tpu" not in keys and any(
        v is literal and string(k) == "cuda" for k, v in zip(table.keys, table.values, strict=True)
    )


def _is_of_torch(module: Module, literal: ast.expr) -> bool:
    """Whether the backend is one of torch.distributed's: in a table it may be another library's of the same name."""
    within = any(isinstance(a, ast.Dict | ast.keyword) for a in module.ancestors(literal))
    return not within or _IMPORTS_TORCH.search(module.source.text) is not None


def _handed_over(module: Module, literal: ast.expr) -> bool:
    """Whether a literal is an argument of a call that makes a process group; capitals also name other things of NCCL's."""
    call = module.parent(literal)
    call = module.parent(call) if isinstance(call, ast.keyword) else call
    return isinstance(call, ast.Call) and (dotted(call.func) or "").endswith(("init_process_group", "new_group"))


def _nccl(module: Module, literal: ast.expr, text: str) -> tuple[ast.expr, list[Edit]]:
    """The place that is changed for an NCCL literal, and how: the choice between it and gloo where there is one."""
    choice = module.parent(literal)
    if isinstance(choice, ast.IfExp) and literal is choice.body and string(choice.orelse) == "gloo":
        if _means_backend(module, choice) and not on_cuda_path(module, choice):
            subject = _asked(module, choice.test)
            if subject is not None:
                return choice, _default(module, choice, subject)
            calls = availability_calls(module, choice.test)
            if calls and is_cuda_test(module, choice.test, flags=False):
                widened = [edit for c in calls for edit in ask_accelerator(module, c)]
                return choice, [*_default(module, literal, ""), *widened]
    if isinstance(choice, ast.IfExp) and literal is choice.orelse and string(choice.body) == "gloo":
        subject = _asked(module, choice.test.operand) if isinstance(choice.test, ast.UnaryOp) else None
        if subject is not None and _means_backend(module, choice):
            return choice, _default(module, choice, subject)
    if _means_backend(module, literal) and not on_cuda_path(module, literal):
        return literal, _edits(module, literal, text)
    return literal, []


def _gloo(module: Module, literal: ast.expr) -> list[Edit]:
    subject = _without_cuda(module, literal)
    return _default(module, literal, subject) if subject is not None and _means_backend(module, literal) else []


def _default(module: Module, place: ast.expr, subject: str) -> list[Edit]:
    """Puts the default backend in a place: that of the device ``subject`` names, or of the resolved one."""
    name, edits = (subject, []) if subject else device(module, place)
    found, more = _backend_of(module, place, name)
    return [module.replace(place, found), *edits, *more]


def _backend_of(module: Module, place: ast.expr, name: str) -> tuple[str, list[Edit]]:
    """The backend for a device as text; a PyTorch that cannot tell is asked for CUDA's and the CPU's only."""
    text = f"{spell(module, _DEFAULT)}({name})"
    if not is_for_older(module):
        return text, []
    kind, edits = device_type_operand(module, place)
    known = f'"nccl" if {kind} == "cuda" else "gloo" if {kind} == "cpu" else {text}'
    return parenthesised(module, place, known), edits


def _asked(module: Module, test: ast.expr) -> str | None:
    """What a test for CUDA asks: a variable's device (its text), the machine (empty), or something else (None)."""
    if isinstance(test, ast.Call):
        name = module.qualify(test.func) or ""
        return "" if name == "torch.cuda.is_available" or name.endswith("is_nccl_available") else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        if string(test.comparators[0]) == "cuda" and dotted(test.left):
            return module.text(test.left)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return "" if all(_asked(module, value) == "" for value in test.values) else None
    return None


def _without_cuda(module: Module, literal: ast.expr) -> str | None:
    """For a literal in the else branch of a test for CUDA whose other branch takes NCCL: what the test asks."""
    child: ast.AST = literal
    for parent in module.ancestors(literal):
        if isinstance(parent, ast.If):
            other = child in parent.orelse and any(string(n) == "nccl" for s in parent.body for n in ast.walk(s))
            return _asked(module, parent.test) if other else None
        child = parent
    return None


def _means_backend(module: Module, value: ast.expr) -> bool:
    parent = module.parent(value)
    if isinstance(parent, ast.IfExp | ast.BoolOp) and not (isinstance(parent, ast.IfExp) and value is parent.test):
        return _means_backend(module, parent)
    if isinstance(parent, ast.Assign):
        return any(_names_backend(t) for t in parent.targets)
    if isinstance(parent, ast.AnnAssign):
        return _names_backend(parent.target)
    if isinstance(parent, ast.Dict):
        return any(_is_backend(string(k)) for k, v in zip(parent.keys, parent.values, strict=True) if v is value)
    if isinstance(parent, ast.arguments):
        return _is_default(parent, value)
    if isinstance(parent, ast.keyword):
        return _is_keyword(module, parent)
    if isinstance(parent, ast.Call) and value in parent.args:
        return _is_argument(parent, value)
    return isinstance(parent, ast.Return) and _is_backend(getattr(module.function(parent), "name", None))


def _names_backend(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return _is_backend(string(target.slice))
    return _is_backend((dotted(target) or "").rpartition(".")[2])


def _is_backend(name: str | None) -> bool:
    return name is not None and _WORD.search(name.lstrip("-").replace("-", "_")) is not None


def _is_default(arguments: ast.arguments, value: ast.expr) -> bool:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return any(default is value and _is_backend(argument.arg) for argument, default in pairs)


def _is_keyword(module: Module, keyword: ast.keyword) -> bool:
    call = module.parent(keyword)
    if keyword.arg == "default" and isinstance(call, ast.Call):
        return any(_is_backend(string(a)) for a in call.args)
    return _is_backend(keyword.arg)


def _is_argument(call: ast.Call, value: ast.expr) -> bool:
    name = (dotted(call.func) or "").rpartition(".")[2]
    index = call.args.index(value)
    if name in ("get", "getenv", "setdefault", "getattr"):
        return index > 0 and _is_backend(string(call.args[index - 1]))
    return name == "init_process_group" and index == 0


def _edits(module: Module, choice: ast.expr, text: str) -> list[Edit]:
    name, edits = device(module, choice)
    found, more = _backend_of(module, choice, name)
    edits = [*edits, *more]
    if ":" in text and string(choice) is not None:
        found = f"{module.text(choice)} if {cuda_test(module)} else {found}"
        return [module.replace(choice, parenthesised(module, choice, found)), *edits]
    return [module.replace(choice, found), *edits]
