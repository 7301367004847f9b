"""TPU902: weights tied by assignment, which a move to the TPU unties."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted
from tools.code.module import Module
from tools.code.rewrite import AVAILABLE, cuda_test, header, insert_after_header, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_FLAG = "set_swap_module_params_on_conversion"
_ADDED = (
    "# Moving a module to some accelerators makes new parameters; swapping keeps tied weights one tensor.\n"
    "if torch.accelerator.is_available() and not torch.cuda.is_available():\n"
    "    torch.__future__.set_swap_module_params_on_conversion(True)\n"
)
_METHOD = """
    def _apply(self, *args, **kwargs):
        # A move to some accelerators makes new parameters; weights that were tied before it stay tied.
        tied = self.decoder.weight is self.encoder.weight
        moved = super()._apply(*args, **kwargs)
        if tied:
            self.decoder.weight = self.encoder.weight
        return moved
"""

Pair = tuple[str, str]
"""Target and source of a tie, as dotted names."""


class KeepTiedWeights(PythonRule):
    """``self.head.weight = self.embedding.weight`` ties two layers by sharing one Parameter.

    In torch_tpu 0.2.0 ``module.to("tpu")`` makes new Parameters, one for each place, so the tie is lost without a word:
    the model trains on with two tensors, and its parameter count and its results differ.

    A class that ties its own layers in ``__init__`` gets an ``_apply`` (what ``.to`` and its kin call) that ties again
    what was tied before the move. Where the move keeps the objects, as on CUDA and the CPU, it does nothing.

    A tie made elsewhere has no such place. PyTorch's switch for swapping parameters on conversion keeps the objects and
    so the tie (checked: one parameter, the same object); it is global, so that fix is graded unsafe, and it is set only
    with an accelerator that is not CUDA.

    Weights that one model lends another (``model.out.weight = loaded.out.weight``) are copies and not ties. Not
    covered: ties made by a library (``tie_weights`` of Transformers), or through ``setattr``.
    """

    ID = "TPU902"
    NAME = "keep-tied-weights"
    FAMILY = "M"
    MESSAGE = "these weights are tied, and moving the model to a TPU unties them silently"
    WHOLE_WORDS = True
    TRIGGERS = (".weight =", ".weight=", ".bias =")
    COVERS = ("M2", "M4")
    VALID = (
        "import torch\ntorch.__future__.set_swap_module_params_on_conversion(True)\nself.a.weight = self.b.weight\n",
        "self.a.weight.data = self.b.weight.data\n",
        "import torch\nself.a.weight = torch.nn.Parameter(self.b.weight.clone())\n",
        "weight = self.b.weight\nself.weight = other.weight\n",
        "model.out.weight = checkpoint.out.weight\n",
        "for a, b in zip(state.blocks, net.blocks):\n    b.lin.weight = a.dense.weight\n",
    )
    INVALID = (
        Invalid(
            "import torch.nn as nn\n\nclass M(nn.Module):\n    def __init__(self, tie):\n"
            "        self.encoder, self.decoder = make()\n        if tie:\n"
            "            self.decoder.weight = self.encoder.weight\n\n    def forward(self, x):\n        return x\n",
            "import torch.nn as nn\n\nclass M(nn.Module):\n    def __init__(self, tie):\n"
            "        self.encoder, self.decoder = make()\n        if tie:\n"
            f"            self.decoder.weight = self.encoder.weight\n{_METHOD}"
            "\n    def forward(self, x):\n        return x\n",
        ),
        Invalid(
            "import torch.nn as nn\nclass M(nn.Module):\n    def __init__(self):\n"
            "        self.encoder = nn.Embedding(9, 4)\n        self.decoder = nn.Linear(4, 9)\n"
            "        self.decoder.weight = self.encoder.weight",
            "import torch.nn as nn\nclass M(nn.Module):\n    def __init__(self):\n"
            "        self.encoder = nn.Embedding(9, 4)\n        self.decoder = nn.Linear(4, 9)\n"
            f"        self.decoder.weight = self.encoder.weight\n{_METHOD}",
        ),
        Invalid(
            "import torch\nimport torch.nn as nn\n\nclass M(nn.Module):\n    def tie(self):\n"
            "        self.decoder.weight = self.encoder.weight\n",
            f"import torch\nimport torch.nn as nn\n\n{_ADDED}\nclass M(nn.Module):\n    def tie(self):\n"
            "        self.decoder.weight = self.encoder.weight\n",
            unsafe=True,
        ),
        Invalid("import torch.nn as nn\nmodel.lm_head.weight = model.wte.weight\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields assignments of one layer's weight to another."""
        if _FLAG in module.source.text:
            return
        for statement in module.nodes(ast.Assign):
            if (
                _pair(statement) is None
                or not _one_model(statement)
                or getattr(module.function(statement), "name", "") == "_apply"
            ):
                continue
            holder = _own_class(module, statement)
            if holder is None:
                note = "assumes that parameters may be swapped on conversion; tying again after the move also works"
                yield Match(*module.span(statement), fix=_switch(module), grade=Grade.UNSAFE, note=note)
            elif not _has_apply(holder):
                yield Match(*module.span(statement), fix=_method(module, holder))


def _pair(statement: ast.Assign) -> Pair | None:
    source = dotted(statement.value)
    for target in statement.targets:
        name = dotted(target)
        if source is not None and name is not None and _ties(name, source):
            return name, source
    return None


def _ties(target: str, source: str) -> bool:
    both = [name.split(".") for name in (target, source)]
    return all(len(parts) >= 3 and parts[-1] in ("weight", "bias") for parts in both) and target != source


def _one_model(statement: ast.Assign) -> bool:
    """Whether both names may be parts of one model; a weight that another model lends is copied."""
    pair = _pair(statement)
    assert pair is not None
    roots = {name.partition(".")[0] for name in pair}
    return len(roots) < 2 or "self" in roots


def _own_class(module: Module, statement: ast.Assign) -> ast.ClassDef | None:
    """The class whose ``__init__`` ties two layers it always has, where an ``_apply`` of its own can tie them again."""
    function = module.function(statement)
    pair = _pair(statement)
    if not isinstance(function, ast.FunctionDef) or function.name != "__init__" or pair is None:
        return None
    holder = module.parent(function)
    if not isinstance(holder, ast.ClassDef) or not all(name.startswith("self.") for name in pair):
        return None
    if statement in function.body:
        return holder
    always = {name for inner in function.body if isinstance(inner, ast.Assign) for name in _targets(inner)}
    needed = {".".join(name.split(".")[:2]) for name in pair}
    return holder if needed <= always else None


def _targets(statement: ast.Assign) -> Iterator[str]:
    for target in statement.targets:
        for element in target.elts if isinstance(target, ast.Tuple) else [target]:
            name = dotted(element)
            if name is not None:
                yield name


def _has_apply(holder: ast.ClassDef) -> bool:
    return any(isinstance(inner, ast.FunctionDef) and inner.name == "_apply" for inner in holder.body)


def _method(module: Module, holder: ast.ClassDef) -> Fix:
    source = module.source
    function = next(f for f in holder.body if isinstance(f, ast.FunctionDef) and f.name == "__init__")
    pairs = [p for s in module.nodes(ast.Assign) if _own_class(module, s) is holder and (p := _pair(s))]
    margin = source.text[source.starts[function.lineno - 1] : module.span(function)[0]]
    step = source.indent
    several = len(pairs) > 1
    names = [f"tied_{number}" if several else "tied" for number, _ in enumerate(pairs, 1)]
    lines = [
        "",
        f"{margin}def _apply(self, *args, **kwargs):",
        f"{margin}{step}# A move to some accelerators makes new parameters; weights that were tied before it stay tied.",
        *(f"{margin}{step}{name} = {target} is {origin}" for name, (target, origin) in zip(names, pairs, strict=True)),
        f"{margin}{step}moved = super()._apply(*args, **kwargs)",
    ]
    for name, (target, origin) in zip(names, pairs, strict=True):
        lines += [f"{margin}{step}if {name}:", f"{margin}{step}{step}{target} = {origin}"]
    lines += [f"{margin}{step}return moved", ""]
    last = function.end_lineno or function.lineno
    if last < len(source.starts):
        place, opening = source.starts[last], ""
    else:
        place, opening = len(source.text), source.newline
    return Fix((Edit(place, place, opening + source.newline.join(lines)),))


def _switch(module: Module) -> Fix:
    text = _ADDED.rstrip("\n").replace("    ", module.source.indent)
    text = text.replace("torch.accelerator.is_available()", f"{spell(module, AVAILABLE)}()")
    text = text.replace("torch.cuda.is_available()", cuda_test(module))
    text = text.replace("torch.__future__", spell(module, "torch.__future__"))
    bound = module.names.spelling("torch") is not None
    if not bound:
        text = f"import torch\n\n{text}"
    lines = text.replace("\n", module.source.newline)
    return Fix((insert_after_header(module, lines, blank=bound or not header(module)),))
