"""TPU711: ``torch.compile`` with what only Inductor understands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import is_on_cpu_or_cuda, on_cpu_or_cuda, only_if, remove_keyword
from tools.code.edits import Edit, Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, keyword, string
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'
_MODES = frozenset({"reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"})


class KeepInductorOptions(PythonRule):
    """``torch.compile(mode="max-autotune")``, ``dynamic=True`` and ``backend="inductor"`` raise on TorchTPU 0.2.0.

    The mode and ``dynamic=True`` stay on the CPU and CUDA; elsewhere the mode is the backend's and shapes are static, since
    leaving them open (``None``) makes TorchTPU pad at the second shape, which is experimental. ``backend="inductor"`` is
    taken out: it is the default, and TorchTPU chooses by the inputs' device when none is named. ``options=`` is read and
    ignored by TorchTPU, so it stays.

    Not covered: the backend in a variable.
    """

    ID = "TPU711"
    NAME = "keep-inductor-options"
    FAMILY = "Q"
    MESSAGE = "this argument of torch.compile is for Inductor; TorchTPU refuses it"
    WHOLE_WORDS = True
    TRIGGERS = ("torch.compile", '"inductor', "'inductor", "reduce-overhead", "max-autotune", "dynamic=True")
    REQUIRES = ("compile",)
    COVERS = ("Q1", "Q5")
    VALID = (
        "import torch\nmodel = torch.compile(model)\nother = torch.compile(model, mode='default', fullgraph=True)\n",
        "import torch\nmodel = torch.compile(model, backend='aot_eager', dynamic=False, mode=None)\n",
        "import re\npattern = re.compile('a', flags=mode)\n",
        "model.compile(optimizer='adam', loss='mse')\n",
        "import torch\nif torch.cuda.is_available():\n    model = torch.compile(model, mode='max-autotune')\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\nmodel = torch.compile(model, mode='max-autotune', backend='inductor')\n",
            f"import torch\n\n{_TOP}\n"
            'model = torch.compile(model, mode=\'max-autotune\' if DEVICE_TYPE in ("cpu", "cuda") else None)\n',
        ),
        Invalid(
            "import torch\n\n@torch.compile(dynamic=True)\ndef f(x):\n    return x\n",
            f"import torch\n\n{_TOP}\n"
            '@torch.compile(dynamic=DEVICE_TYPE in ("cpu", "cuda"))\ndef f(x):\n    return x\n',
        ),
        Invalid(
            "import functools\nimport torch\n\n@functools.partial(torch.compile, backend='inductor', fullgraph=True)\n"
            "def f(x):\n    return x\n",
            "import functools\nimport torch\n\n@functools.partial(torch.compile, fullgraph=True)\n"
            "def f(x):\n    return x\n",
        ),
        Invalid(
            "import torch\nmodel.compile(backend=\"inductor\")\nmodel.compile(mode='reduce-overhead')\n",
            f"import torch\n\n{_TOP}model.compile()\n"
            'model.compile(mode=\'reduce-overhead\' if DEVICE_TYPE in ("cpu", "cuda") else None)\n',
            count=2,
        ),
        Invalid(
            "import torch\nmodel = torch.compile(model, mode=args.mode)\n",
            f"import torch\n\n{_TOP}"
            'model = torch.compile(model, mode=args.mode if DEVICE_TYPE in ("cpu", "cuda") else None)\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls with an argument TorchTPU refuses, off the CUDA-only path."""
        for call in module.nodes(ast.Call):
            if on_cuda_path(module, call):
                continue
            if _is_compile(module, call):
                edits = _edits(module, call, literals_only=False)
            elif isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and not module.qualify(call.func):
                edits = _edits(module, call, literals_only=True)
            else:
                continue
            if edits:
                yield Match(*module.span(call), fix=Fix(tuple(edits)))


def _is_compile(module: Module, call: ast.Call) -> bool:
    name = module.qualify(call.func)
    if name == "functools.partial":
        return bool(call.args) and module.qualify(call.args[0]) == "torch.compile"
    return name == "torch.compile"


def _edits(module: Module, call: ast.Call, *, literals_only: bool) -> list[Edit]:
    """Edits for one call; of a method named ``compile`` only what is unmistakably PyTorch's."""
    edits: list[Edit] = []
    backend, mode, dynamic = (keyword(call, name) for name in ("backend", "mode", "dynamic"))
    if mode is not None and _is_mode(module, mode.value, literals_only):
        edits += _on_known_devices(module, call, mode.value)
    if dynamic is not None and isinstance(dynamic.value, ast.Constant) and dynamic.value.value is True:
        test, top = on_cpu_or_cuda(module, call)
        edits += [module.replace(dynamic.value, test), *top]
    if backend is not None and string(backend.value) == "inductor":
        edits.append(remove_keyword(module, call, "backend"))
    return edits


def _is_mode(module: Module, value: ast.expr, literals_only: bool) -> bool:
    if isinstance(value, ast.Constant):
        return value.value in _MODES
    if isinstance(value, ast.IfExp) and (is_on_cpu_or_cuda(value.test) or is_cuda_test(module, value.test)):
        return False
    return not literals_only


def _on_known_devices(module: Module, call: ast.Call, value: ast.expr) -> list[Edit]:
    test, edits = on_cpu_or_cuda(module, call)
    return [only_if(module, call, value, test, "None"), *edits]
