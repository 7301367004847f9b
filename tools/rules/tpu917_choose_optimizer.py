"""TPU917: 8-bit, paged and fused optimizers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import on_cpu_or_cuda, spread
from tools.code.cuda_calls import imported
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import parenthesised, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NAMES = frozenset("adamw_bnb_8bit adamw_8bit paged_adamw paged_adamw_8bit paged_adamw_32bit adamw_apex_fused".split())
_CLASSES = {
    **dict.fromkeys(
        ("AdamW8bit", "AdamW32bit", "PagedAdamW", "PagedAdamW8bit", "PagedAdamW32bit"), "torch.optim.AdamW"
    ),
    **dict.fromkeys(("Adam8bit", "Adam32bit", "PagedAdam", "PagedAdam8bit", "PagedAdam32bit"), "torch.optim.Adam"),
}
_KNOWN = frozenset({"lr", "betas", "eps", "weight_decay", "amsgrad"})
_NOTE = "torch.optim.AdamW off CUDA and the CPU; its state takes more memory"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class ChooseOptimizer(PythonRule):
    """``optim="paged_adamw_8bit"`` and ``bnb.optim.AdamW8bit(...)`` need kernels for CUDA.

    On a TPU the plain optimizer of the same kind takes its place, with the same arguments; on CUDA and the CPU nothing
    changes.

    Not covered: options that only the special optimizer has (``optim_bits``, ``min_8bit_size``), which are reported.
    """

    ID = "TPU917"
    NAME = "choose-optimizer"
    FAMILY = "F"
    MESSAGE = "this optimizer has kernels for CUDA only"
    TRIGGERS = ("adamw_", "paged_adamw", "8bit(", "32bit(", "PagedAdam")
    PATTERN = r"[\"'](paged_)?adamw(_8bit|_32bit|_bnb_8bit|_apex_fused)?[\"']|bitsandbytes"
    COVERS = ("F8", "F7")
    VALID = (
        "a = TrainingArguments(optim='adamw_torch')\n",
        "if args.optim == 'paged_adamw_8bit':\n    pass\n",
        "from own import AdamW8bit\no = AdamW8bit(p)\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\na = TrainingArguments(optim='paged_adamw_8bit')\n",
            f"import torch\n\n{_TOP}\n"
            "a = TrainingArguments(optim='paged_adamw_8bit' if DEVICE_TYPE in (\"cpu\", \"cuda\") else 'adamw_torch')\n",
        ),
        Invalid(
            "import torch\nimport bitsandbytes as bnb\n\no = bnb.optim.AdamW8bit(m.parameters(), lr=1e-4)\n",
            f"import torch\nimport bitsandbytes as bnb\n\n{_TOP}\n"
            'o = (bnb.optim.AdamW8bit if DEVICE_TYPE in ("cpu", "cuda") else torch.optim.AdamW)(m.parameters(), lr=1e-4)\n',
        ),
        Invalid("import bitsandbytes as bnb\no = bnb.optim.AdamW8bit(p, min_8bit_size=4096)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields names given as ``optim``, and calls of bitsandbytes' optimizers."""
        for node in module.nodes(ast.Constant):
            if string(node) in _NAMES and _is_choice(module, node) and not on_cuda_path(module, node):
                quote = module.text(node)[-1]
                condition, edits = on_cpu_or_cuda(module, node)
                text = f"{module.text(node)} if {condition} else {quote}adamw_torch{quote}"
                change = [module.replace(node, parenthesised(module, node, text)), *edits]
                yield Match(*module.span(node), fix=imported(module, change), note=_NOTE)
        for call in module.calls(*(f"bitsandbytes.optim.{name}" for name in _CLASSES)):
            if on_cuda_path(module, call):
                continue
            if spread(call) or len(call.args) > 2 or any(k.arg not in _KNOWN for k in call.keywords):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
                continue
            twin = _CLASSES[(module.qualify(call.func) or "").rpartition(".")[2]]
            condition, edits = on_cpu_or_cuda(module, call)
            text = f"({module.text(call.func)} if {condition} else {spell(module, twin)})"
            change = [module.replace(call.func, text), *edits]
            yield Match(*module.span(call), fix=imported(module, change, twin), note=_NOTE)


def _is_choice(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.keyword):
        return parent.arg in ("optim", "optimizer")
    if isinstance(parent, ast.Dict):
        return any(string(k) == "optim" for k, v in zip(parent.keys, parent.values, strict=True) if v is node)
    return isinstance(parent, ast.AnnAssign) and getattr(parent.target, "id", "") == "optim"
