"""TPU913: flash attention named as a model's implementation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_calls import elsewhere, imported
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import CUDA_AVAILABLE, cuda_test
from tools.rules.base import Invalid, Match, PythonRule

_FLASH = re.compile(r"flash_attention_[23]|flash_attention|kernels-community/.*flash.*")
_NAME = re.compile(r"attn_impl|attn_implementation|attention_implementation")
_FLAG = "use_flash_attention_2"


class ChooseAttention(PythonRule):
    """``attn_implementation="flash_attention_2"`` needs flash_attn, which is for CUDA alone.

    Off CUDA the model is given ``"sdpa"``, PyTorch's own attention, with the same result within rounding. On CUDA
    everything stays; without CUDA loading the model failed before.

    Not covered: names read from a configuration file or the command line.
    """

    ID = "TPU913"
    NAME = "choose-attention"
    FAMILY = "F"
    MESSAGE = "flash attention is for CUDA alone; sdpa computes the same elsewhere"
    TRIGGERS = ("flash_attention",)
    PATTERN = r"= *[\"'](flash_attention|kernels-community)|attn_impl\w*[\"']\]? *[:=] *[\"']|attention_impl\w*[\"'] *: *[\"']|use_flash_attention_2 *= *True"
    COVERS = ("F2",)
    VALID = (
        "m = M.from_pretrained(n, attn_implementation='sdpa')\n",
        "import torch\nm = M.from_pretrained(n, attn_implementation='flash_attention_2' if torch.cuda.is_available() else 'sdpa')\n",
        "if config.attn_implementation == 'flash_attention_2':\n    pass\n",
        "m = M.from_pretrained(n, use_flash_attention_2=False)\n",
        "names = {'flash_attention_2': FlashAttention}\n",
    )
    INVALID = (
        Invalid(
            'import torch\nm = M.from_pretrained(n, attn_implementation="flash_attention_2")\n',
            'import torch\nm = M.from_pretrained(n, attn_implementation="flash_attention_2" if torch.cuda.is_available() else "sdpa")\n',
        ),
        Invalid(
            "import torch\nconfig._attn_implementation = 'flash_attention_2'\nkwargs = {'attn_implementation': 'flash_attention_2'}\n",
            "import torch\nconfig._attn_implementation = 'flash_attention_2' if torch.cuda.is_available() else 'sdpa'\n"
            "kwargs = {'attn_implementation': 'flash_attention_2' if torch.cuda.is_available() else 'sdpa'}\n",
            count=2,
        ),
        Invalid(
            "import torch\nm = M.from_pretrained(n, use_flash_attention_2=True)\n",
            "import torch\nm = M.from_pretrained(n, use_flash_attention_2=torch.cuda.is_available())\n",
        ),
        Invalid(
            "import torch\ndef load(attn_implementation: str = 'flash_attention_2'):\n    pass\n",
            "import torch\ndef load(attn_implementation: str = 'flash_attention_2' if torch.cuda.is_available() else 'sdpa'):\n    pass\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields literals that choose flash attention, and the older flag."""
        for node in module.nodes(ast.Constant):
            if on_cuda_path(module, node):
                continue
            text = string(node)
            if text is not None and _FLASH.fullmatch(text) and _chooses(module, node):
                quote = module.text(node)[-1]
                yield Match(*module.span(node), fix=elsewhere(module, node, f"{quote}sdpa{quote}"))
            parent = module.parent(node)
            if node.value is True and isinstance(parent, ast.keyword) and parent.arg == _FLAG:
                fix = imported(module, [module.replace(node, cuda_test(module))], CUDA_AVAILABLE)
                yield Match(*module.span(node), fix=fix)


def _chooses(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.keyword):
        return bool(_NAME.search(parent.arg or "")) or (parent.arg == "default" and _option(module, parent))
    if isinstance(parent, ast.Dict):
        return any(_NAME.search(string(k) or "") for k, v in zip(parent.keys, parent.values, strict=True) if v is node)
    if isinstance(parent, ast.Assign):
        return any(_NAME.search(_target(target)) for target in parent.targets)
    if isinstance(parent, ast.AnnAssign):
        return bool(_NAME.search(_target(parent.target)))
    if isinstance(parent, ast.arguments):
        return _default(parent, node)
    return False


def _target(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript):
        return string(target.slice) or ""
    return (dotted(target) or "").rpartition(".")[2]


def _option(module: Module, node: ast.keyword) -> bool:
    call = module.parent(node)
    return isinstance(call, ast.Call) and any(_NAME.search((string(a) or "").replace("-", "_")) for a in call.args)


def _default(arguments: ast.arguments, node: ast.expr) -> bool:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return any(default is node and _NAME.search(argument.arg) for argument, default in pairs)
