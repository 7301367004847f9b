"""TPU601: page-locked host memory asked for whatever the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import conjunction
from tools.code.edits import Edit, Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, keyword, string
from tools.code.rewrite import cuda_test, import_edits
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_KEY = "pin_memory"


class PinMemoryOnCuda(PythonRule):
    """``DataLoader(pin_memory=True)``: pinning is for copies to CUDA.

    TorchTPU may have no host allocator, and then the loader dies at its first batch; without any accelerator the option
    only warns. It becomes ``torch.cuda.is_available()``; a variable is combined with it. The literal ``True`` is replaced
    wherever ``pin_memory`` is a keyword, a key of a dictionary or of an item assignment.

    Not covered: dictionaries filled elsewhere, and Hugging Face's ``dataloader_pin_memory``, which is on by default.
    """

    ID = "TPU601"
    NAME = "pin-memory-on-cuda"
    FAMILY = "G"
    MESSAGE = "page-locked memory is for CUDA; a DataLoader that pins fails on a TPU without a host allocator"
    WHOLE_WORDS = True
    TRIGGERS = (_KEY,)
    PATTERN = r"pin_memory\s*=\s*(?!False\b|None\b)|pin_memory[\"']\]?\s*[:=]"
    COVERS = ("G1", "G2")
    VALID = (
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=False)\n",
        "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=torch.cuda.is_available())\n",
        "import torch\nkwargs = {'pin_memory': True} if torch.cuda.is_available() else {}\n",
        "def loader(data, pin_memory=True):\n    return make(data, pin_memory=pin_memory)\n",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=device.type == 'cuda')\n",
        "import torch\n\ndef zeros(size, pin_memory):\n    return torch.zeros(size, pin_memory=pin_memory)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=True, num_workers=2)\n",
            "import torch\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(data, pin_memory=torch.cuda.is_available(), num_workers=2)\n",
        ),
        Invalid(
            "import torch\nkwargs = {'num_workers': 1, 'pin_memory': True}\nkwargs['pin_memory'] = True\n",
            "import torch\nkwargs = {'num_workers': 1, 'pin_memory': torch.cuda.is_available()}\n"
            "kwargs['pin_memory'] = torch.cuda.is_available()\n",
            count=2,
        ),
        Invalid(
            "import torch\nfrom torch.utils.data.dataloader import DataLoader\n"
            "loader = DataLoader(data, batch_size=2, pin_memory=args.pin or use_cuda)\n",
            "import torch\nfrom torch.utils.data.dataloader import DataLoader\n"
            "loader = DataLoader(data, batch_size=2, pin_memory=(args.pin or use_cuda) and torch.cuda.is_available())\n",
        ),
        Invalid(
            "from torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=True)\n",
            "import torch\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(data, pin_memory=torch.cuda.is_available())\n",
        ),
        Invalid(
            "import torch\nbuffer = torch.empty(8, pin_memory=True)\n",
            "import torch\nbuffer = torch.empty(8, pin_memory=torch.cuda.is_available())\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields values of ``pin_memory`` that hold off CUDA."""
        for value, edit in self._values(module):
            if not on_cuda_path(module, value):
                grade = None if _reaches_loader(module, value) else Grade.UNSAFE
                yield Match(*module.span(value), fix=Fix((edit, *import_edits(module))), grade=grade)

    def _values(self, module: Module) -> Iterator[tuple[ast.expr, Edit]]:
        test = cuda_test(module)
        for call in module.nodes(ast.Call):
            given = keyword(call, _KEY)
            if given is not None and not _is_true(given.value) and _pins(module, call):
                if not _settled(module, given.value):
                    yield given.value, conjunction(module, call, given.value, test)
        yield from ((value, module.replace(value, test)) for value in _literals(module) if _is_true(value))


def _literals(module: Module) -> Iterator[ast.expr]:
    """What is given for ``pin_memory`` as a keyword, in a dictionary or by an item assignment."""
    yield from (k.value for k in module.nodes(ast.keyword) if k.arg == _KEY)
    for table in module.nodes(ast.Dict):
        yield from (v for k, v in zip(table.keys, table.values, strict=True) if string(k) == _KEY)
    for statement in module.nodes(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Subscript) and string(target.slice) == _KEY:
            yield statement.value


def _reaches_loader(module: Module, value: ast.expr) -> bool:
    """Whether a value may go to a data loader: a dictionary must be handed on, a class of the file be one."""
    holder = module.parent(value)
    if isinstance(holder, ast.keyword):
        holder = module.parent(holder)
    name = getattr(holder.func, "id", "") if isinstance(holder, ast.Call) else ""
    if holder is not None and (isinstance(holder, ast.Dict) or name == "dict"):
        return "**" in module.source.text or not isinstance(module.parent(holder), ast.Subscript | ast.Call)
    own = next((c for c in module.tree.body if isinstance(c, ast.ClassDef) and c.name == name), None)
    return own is None or "DataLoader" in module.text(own)


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _pins(module: Module, call: ast.Call) -> bool:
    """Whether the call makes a data loader."""
    return (module.qualify(call.func) or "").endswith("DataLoader")


def _settled(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return not value.value
    if isinstance(value, ast.IfExp):
        return is_cuda_test(module, value.test)
    return is_cuda_test(module, value)
