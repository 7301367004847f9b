"""TPU912: functions and classes of CUDA libraries that PyTorch has an equivalent for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import alone, cuda_test
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_FLASH = '''
def {name}(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
    """Attention by PyTorch, with lengths before heads as flash_attn has them."""
    q, k, v = q.transpose(1, 2), k.transpose(1, 2).to(q.dtype), v.transpose(1, 2).to(q.dtype)
    mask = None
    if causal and q.shape[2] != k.shape[2]:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, dropout_p, causal and mask is None, scale=softmax_scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return out.transpose(1, 2)
'''
_XFORMERS = '''
def {name}(query, key, value, attn_bias=None, p=0.0, scale=None):
    """Attention by PyTorch, with lengths before heads as xFormers has them."""
    query, key, value = (x.transpose(1, 2) if x.ndim == 4 else x for x in (query, key, value))
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_bias, p, scale=scale)
    return out.transpose(1, 2) if out.ndim == 4 else out
'''
_ADAM = "from functools import partial\n\n{name} = partial(torch.optim.AdamW, weight_decay=0.0)\n"
_NORM = "{name} = torch.nn.LayerNorm\n"

_TEXTS = {
    "flash_attn.flash_attn_func": (_FLASH, {"dropout_p", "softmax_scale", "causal"}, 6),
    "flash_attn.flash_attn_interface.flash_attn_func": (_FLASH, {"dropout_p", "softmax_scale", "causal"}, 6),
    "xformers.ops.memory_efficient_attention": (_XFORMERS, {"attn_bias", "p", "scale"}, 6),
    "apex.optimizers.FusedAdam": (_ADAM, {"lr", "betas", "eps", "weight_decay", "params"}, 2),
    "apex.normalization.FusedLayerNorm": (_NORM, {"normalized_shape", "eps", "elementwise_affine"}, 3),
    "apex.normalization.fused_layer_norm.FusedLayerNorm": (_NORM, {"normalized_shape", "eps", "elementwise_affine"}, 3),
}
"""What stands in for a name off CUDA, the arguments it takes by keyword, and how many by position."""


class ProvideStandIn(PythonRule):
    """``from flash_attn import flash_attn_func`` fails wherever there is no CUDA.

    The import is kept for CUDA, and elsewhere a function or class of the same name does the same with PyTorch:
    ``flash_attn_func`` and ``memory_efficient_attention`` by ``scaled_dot_product_attention`` (heads and lengths
    exchanged, causal masks aligned as flash_attn aligns them), apex's ``FusedAdam`` by ``AdamW`` with its weight decay of
    0, ``FusedLayerNorm`` by ``LayerNorm``. On CUDA nothing changes; without it the import failed.

    Fixed for imports at module level, behind the import of torch, when all calls in the file give arguments that the
    stand-in has. Not covered: imports of a whole package; TPU911 reports those.
    """

    ID = "TPU912"
    NAME = "provide-stand-in"
    FAMILY = "F"
    MESSAGE = "this exists for CUDA only; PyTorch has the same for every device"
    TRIGGERS = ("flash_attn", "xformers", "apex")
    PATTERN = r"^from +(flash_attn|xformers\.ops|apex\.(optimizers|normalization))[\w.]* +import"
    SCOPE = Scope.FILE
    COVERS = ("F1", "F5", "F9", "F11")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    from flash_attn import flash_attn_func\n",
        "import torch\nfrom flash_attn import flash_attn_varlen_func\n",
        "import torch\ntry:\n    from apex.optimizers import FusedAdam\nexcept ImportError:\n    FusedAdam = None\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom apex.normalization import FusedLayerNorm as Norm\n\nnorm = Norm(8, eps=1e-6)\n",
            "import torch\nif torch.cuda.is_available():\n    from apex.normalization import FusedLayerNorm as Norm\nelse:\n"
            "    Norm = torch.nn.LayerNorm\n\nnorm = Norm(8, eps=1e-6)\n",
        ),
        Invalid(
            "import torch\nfrom apex.optimizers import FusedAdam\n\no = FusedAdam(p, lr=0.1)\n",
            "import torch\nif torch.cuda.is_available():\n    from apex.optimizers import FusedAdam\nelse:\n"
            "    from functools import partial\n\n    FusedAdam = partial(torch.optim.AdamW, weight_decay=0.0)\n\n"
            "o = FusedAdam(p, lr=0.1)\n",
        ),
        Invalid("import torch\nfrom apex.optimizers import FusedAdam\n\no = FusedAdam(p, adam_w_mode=False)\n", None),
        Invalid("from flash_attn import flash_attn_func\nimport torch\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields imports of one such name."""
        for statement in module.nodes(ast.ImportFrom):
            if statement.level or on_cuda_path(module, statement) or statement not in module.tree.body:
                continue
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            if not names or not all(name in _TEXTS for name in names):
                continue
            fix = _fix(module, statement, names)
            note = None if fix else "write it with PyTorch's own function, beside a test for CUDA"
            yield Match(*module.span(statement), fix=fix, grade=None if fix else Grade.ADVICE, note=note)


def _fix(module: Module, statement: ast.ImportFrom, names: list[str]) -> Fix | None:
    bound = [alias.asname or alias.name for alias in statement.names]
    if not _torch_before(module, statement) or not alone(module, statement):
        return None
    if not all(_calls_fit(module, name, dotted) for name, dotted in zip(bound, names, strict=True)):
        return None
    newline, step = module.source.newline, module.source.indent
    lines = [f"if {cuda_test(module)}:"]
    lines += [f"{step}{line}" for line in module.text(statement).splitlines()]
    lines.append("else:")
    for name, dotted in zip(bound, names, strict=True):
        text = _TEXTS[dotted][0].format(name=name).replace("    ", step).rstrip("\n")
        lines += [f"{step}{line}" if line else "" for line in text.splitlines()]
    return Fix((module.replace(statement, newline.join(lines)),))


def _torch_before(module: Module, statement: ast.stmt) -> bool:
    """Whether the name ``torch`` is bound above, so that the stand-in can use it."""
    before = module.tree.body[: module.tree.body.index(statement)]
    return any(isinstance(s, ast.Import) and any(a.name == "torch" and not a.asname for a in s.names) for s in before)


def _calls_fit(module: Module, name: str, dotted: str) -> bool:
    """Whether everything the file does with the name works with the stand-in too."""
    _, keywords, positions = _TEXTS[dotted]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            starred = any(isinstance(a, ast.Starred) for a in node.args)
            if starred or len(node.args) > positions or any(k.arg not in keywords for k in node.keywords):
                return False
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == name for b in node.bases):
            return False
    return True
