"""TPU307: float16 asked for by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import argument
from tools.code.guards import assigned, dotted, on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.project import is_test
from tools.rules.base import Invalid, Match, PythonRule
from tools.rules.tpu302_resolve_autocast_device import AUTOCAST, HALF

_NAMES = frozenset({"float16", "fp16", "half", "16-mixed", "fp16-mixed"})
_KEYS = frozenset({"dtype", "torch_dtype", "precision", "mixed_precision", "compute_dtype", "param_dtype", "amp_dtype"})


class ReviewFloat16(PythonRule):
    """Weights or inputs in float16 (``model.half()``, ``torch_dtype=torch.float16``, ``mixed_precision="fp16"``).

    A TPU has no float16 arithmetic: XLA converts around every product, and without a gradient scaler (TPU303) training in
    float16 underflows. bfloat16 is its type. This is reported and not changed, because weights, inputs, comparisons and
    stored files must agree, and bfloat16 has 8 bits of precision where float16 has 11.

    Where float16 is somebody's own wish it stays: under a test for it (``if needs_upcasting: vae.to(torch.float16)``), in
    a method called ``half``, in code for bitsandbytes, in exports of a model to a file (and copies for one), and in tests.

    Not covered: float16 in NumPy, in comparisons and in tables that map names to types, which decide nothing.
    """

    ID = "TPU307"
    NAME = "review-float16"
    FAMILY = "C"
    GRADE = Grade.ADVICE
    MESSAGE = "float16 is converted around every product on a TPU and underflows without a scaler; use bfloat16 there"
    PATTERN = (
        r"fp16\s*=\s*True|[\"']half[\"']|=[\s(\\]*[\"']?[\w.]*(?:half|float16|fp16|16-mixed)"
        r"|\.(?:half\(\s*\)|(?:to|type)\((?:[^\n]*(?:half|float16)|[^\n]*[,(\\]\s*(?:#[^\n]*)?\n))"
    )
    WHOLE_WORDS = True
    TRIGGERS = (".half(", "float16", "fp16", "torch.half", "16-mixed", '"half"', "'half'")
    COVERS = ("C2", "C10", "C11", "C13")
    VALID = (
        "import torch\nif x.dtype == torch.float16:\n    pass\n",
        "import torch\ntypes = {'fp16': torch.float16}\n",
        "import numpy as np\nx = np.zeros(3, dtype=np.float16)\n",
        "import torch\nx = torch.zeros(2, dtype=torch.bfloat16)\n",
        "import torch\nfrom copy import deepcopy\nsave(deepcopy(model).half())\n",
        "import torch\ndef strip_optimizer(f):\n    x = torch.load(f)\n    x['model'].half()\n",
        "import torch\ndef update(path):\n    model = YOLO(path)\n    model.half()\n    model.save(path)\n",
        "import torch\nif kind.__name__ == 'Int8Params':\n    value = value.to(torch.float16)\n",
        "import torch\ny = x.half().cpu().numpy()\n",
        "import torch\ndef decode(self):\n    upcast = self.vae.dtype == torch.float16 and self.force\n"
        "    if upcast:\n        self.vae.to(dtype=torch.float16)\n",
        "import torch\nclass M(torch.nn.Module):\n    def half(self):\n        self.note(dtype=torch.half)\n        return super().half()\n",
        "import torch\nis_cpu_half = x.device.type == 'cpu' and x.dtype == torch.float16\nif is_cpu_half:\n    y = y.to(torch.float16)\n",
        "import torch\nimport bitsandbytes as bnb\nclass Bnb4BitQuantizer:\n    def types(self):\n        torch_dtype = torch.float16\n",
        "import torch\ndef torch2onnx(model):\n    model = model.half()\n    torch.onnx.export(model, x, 'm.onnx')\n",
    )
    INVALID = (
        Invalid("import torch\nmodel = Net().half()\n", None),
        Invalid("import torch\nx = x.to(device, torch.float16)\ny = torch.zeros(2, dtype=torch.half)\n", None, count=2),
        Invalid("from accelerate import Accelerator\na = Accelerator(mixed_precision='fp16')\n", None),
        Invalid("import torch\nargs = TrainingArguments(fp16=True)\n", None),
        Invalid("import torch\nparser.add_argument('--dtype', default='float16')\n", None),
        Invalid("import torch\ndtype = 'float16'\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields places that put values into float16."""
        note = "take bfloat16 where the device is a TPU, for weights, inputs and stored tensors alike"
        for place in self._places(module):
            if not on_cuda_path(module, place) and not _meant(module, place):
                yield Match(*module.span(place), note=note)

    def _places(self, module: Module) -> Iterator[ast.AST]:
        for call in module.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "half" and not call.args:
                if module.qualify(call.func) is None and not _goes_to_numpy(module, call):
                    yield call
            elif module.qualify(call.func) not in AUTOCAST:
                yield from _arguments(module, call)
        for statement in module.nodes(ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id in _KEYS and _is_half(module, statement.value):
                yield statement


def _arguments(module: Module, call: ast.Call) -> Iterator[ast.AST]:
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "type"):
        yield from (a for a in call.args if module.qualify(a) in HALF and not _goes_to_numpy(module, call))
    for each in [] if isinstance(call.func, ast.Attribute) and call.func.attr == "view" else call.keywords:
        switched_on = each.arg == "fp16" and isinstance(each.value, ast.Constant) and each.value.value is True
        if switched_on or (each.arg in _KEYS and _is_half(module, each.value)):
            yield each
    option = string(call.args[0]) if call.args else None
    if option is not None and option.lstrip("-").replace("-", "_") in _KEYS:
        default = argument(call, "default")
        if default is not None and _is_half(module, default):
            yield default


def _is_half(module: Module, value: ast.expr) -> bool:
    return module.qualify(value) in HALF or string(value) in _NAMES


def _goes_to_numpy(module: Module, call: ast.Call) -> bool:
    """Whether the values leave PyTorch in the same expression; NumPy has no bfloat16."""
    for parent in module.ancestors(call):
        if isinstance(parent, ast.Attribute) and parent.attr == "numpy":
            return True
        if not isinstance(parent, ast.Attribute | ast.Call):
            return False
    return False


_TO_FILE = re.compile(
    r"\b(torch\.(onnx\.)?export|onnx\.export|export\.export|convert_to_(coreml|onnx)|coremltools|coreai\w*)\b"
)
_EXPORTER = re.compile(r"(?i)(^|_)export(er|_|\.)|onnx|coreml|tflite|openvino")
_ASKED = re.compile(r"^(half|fp16|float16)$|(^|_)(strip|export|onnx)(_|$)")
_OF_BNB = re.compile(r"Int8Params|Params4bit|FP4Params")
_FOR_BNB = re.compile(r"(?i)bnb|bitsandbytes|4bit|8bit")


def _meant(module: Module, place: ast.AST) -> bool:
    """Whether float16 is what somebody else chose, or is for something that does not run on a TPU."""
    name = module.source.relative.rpartition("/")[2]
    if is_test(module.source.relative) or _is_copy(place) or _is_saved(module, place):
        return True
    if _FOR_BNB.search(name) or _EXPORTER.search(name):
        return True
    child = place
    for parent in module.ancestors(place):
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            if _asks_half(module, parent.test) or _OF_BNB.search(module.text(parent.test)):
                return True
        if isinstance(parent, ast.FunctionDef):
            if _ASKED.search(parent.name) or _TO_FILE.search(module.text(parent)):
                return True
        if isinstance(parent, ast.ClassDef) and _FOR_BNB.search(parent.name):
            return True
        child = parent
    return False


def _asks_half(module: Module, test: ast.expr) -> bool:
    """Whether a test, or the value of the variable it names, compares with float16."""
    if any(isinstance(n, ast.Compare) and _names_half(module, n) for n in ast.walk(test)):
        return True
    held = (part for value in assigned(module, test) for part in ast.walk(value))
    return any(isinstance(n, ast.Compare) and _names_half(module, n) for n in held)


def _names_half(module: Module, test: ast.Compare) -> bool:
    return any(module.names.qualify(n) in HALF for n in ast.walk(test) if isinstance(n, ast.Attribute | ast.Name))


def _is_copy(place: ast.AST) -> bool:
    """Whether it is a copy of a model that goes to float16, as for a file that is to be small."""
    if not isinstance(place, ast.Call) or not isinstance(place.func, ast.Attribute):
        return False
    made = place.func.value
    return isinstance(made, ast.Call) and (dotted(made.func) or "").endswith("deepcopy")


def _is_saved(module: Module, place: ast.AST) -> bool:
    """Whether what goes to float16 is loaded and written again in the same function, as to make a file smaller."""
    function = module.function(place)
    if function is None or not isinstance(place, ast.Call) or not isinstance(place.func, ast.Attribute):
        return False
    name = dotted(place.func.value)
    return name is not None and f"{name}.save(" in module.text(function) and "optim" not in module.text(function)
