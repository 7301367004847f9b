"""TPU914: weights loaded in 8 or 4 bits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import conjunction, is_on_cpu_or_cuda, on_cpu_or_cuda, only_if
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, fact
from tools.rules.base import Invalid, Match, PythonRule

_BITS = frozenset({"load_in_8bit", "load_in_4bit"})
_CONFIG = "BitsAndBytesConfig"
_NOTE = "off CUDA the weights take two to four times the memory; give torch_dtype=torch.bfloat16"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class QuantiseOnCuda(PythonRule):
    """``load_in_8bit=True`` and ``quantization_config=BitsAndBytesConfig(...)`` need bitsandbytes, which has no TPU support.

    On a TPU the model is loaded without; on CUDA and the CPU as before. The weights then take more memory.

    Not covered: quantised files, whose format is in the checkpoint itself.
    """

    ID = "TPU914"
    NAME = "quantise-on-cuda"
    FAMILY = "F"
    MESSAGE = "bitsandbytes has no TPU support"
    TRIGGERS = ("load_in_8bit", "load_in_4bit", "quantization_config", _CONFIG)
    PATTERN = r"load_in_[48]bit|BitsAndBytesConfig"
    COVERS = ("F6", "F7")
    VALID = (
        "m = M.from_pretrained(n, load_in_8bit=False)\n",
        "import torch\nif torch.cuda.is_available():\n    m = M.from_pretrained(n, load_in_8bit=True)\n",
        "m = M.from_pretrained(n, quantization_config=GPTQConfig(bits=4))\n",
        "config = BitsAndBytesConfig(load_in_4bit=True)\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\nm = M.from_pretrained(n, load_in_8bit=True)\n",
            f'import torch\n\n{_TOP}\nm = M.from_pretrained(n, load_in_8bit=DEVICE_TYPE in ("cpu", "cuda"))\n',
        ),
        Invalid(
            "import torch\n\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nm = M.from_pretrained(n, quantization_config=bnb)\n",
            f"import torch\n\n{_TOP}\nbnb = BitsAndBytesConfig(load_in_4bit=True)\n"
            'm = M.from_pretrained(n, quantization_config=bnb if DEVICE_TYPE in ("cpu", "cuda") else None)\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the arguments of loading calls."""
        for call in module.nodes(ast.Call):
            if (isinstance(call.func, ast.Name) and call.func.id == _CONFIG) or on_cuda_path(module, call):
                continue
            if isinstance(call.func, ast.Attribute) and call.func.attr == _CONFIG:
                continue
            for argument in call.keywords:
                edit = _edit(module, call, argument)
                if edit is not None:
                    _, edits = on_cpu_or_cuda(module, call)
                    yield Match(*module.span(argument), fix=Fix((edit, *edits)), note=_NOTE)


def _edit(module: Module, call: ast.Call, argument: ast.keyword) -> Edit | None:
    value = argument.value
    condition, _ = on_cpu_or_cuda(module, call)
    if argument.arg in _BITS and _loads(call):
        if isinstance(value, ast.Constant) and not value.value:
            return None
        settled = any(is_on_cpu_or_cuda(n) for n in ast.walk(value) if isinstance(n, ast.expr))
        return None if settled else conjunction(module, call, value, condition)
    if argument.arg == "quantization_config" and (_makes(value) or dotted(value) in _configs(module)):
        return only_if(module, call, value, condition, "None")
    return None


def _loads(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("from_pretrained", "from_config", "load_model")


def _makes(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and (dotted(value.func) or "").rpartition(".")[2] == _CONFIG


@fact
def _configs(module: Module) -> frozenset[str]:
    """Names that hold such a configuration."""
    made = (s for s in module.nodes(ast.Assign) if _makes(s.value))
    return frozenset(name for s in made for target in s.targets if (name := dotted(target)))
