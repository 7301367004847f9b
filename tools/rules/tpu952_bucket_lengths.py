"""TPU952: batches padded to their own longest sequence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import add_keyword, first_in_functions, spread
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, keyword, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_COLLATORS = frozenset({"DataCollatorWithPadding", "DataCollatorForTokenClassification", "DataCollatorForSeq2Seq",
                        "DataCollatorForLanguageModeling"})  # fmt: skip
_PADS = ("torch.nn.utils.rnn.pad_sequence",)
_STEP = 64
_NOTE = f"pads to multiples of {_STEP}: a few shapes instead of one for each length; more padding to compute"


class BucketLengths(PythonRule):
    """``tokenizer(texts, padding=True)`` pads each batch to its own longest text: a new shape, and a new compilation.

    ``pad_to_multiple_of`` leaves a few lengths. Masked positions do not change what a model computes beyond rounding, but
    the batch is another one, so the fix is unsafe, and only reported where no mask is in sight. ``pad_sequence`` has no such option and is reported.

    Not covered: padding written by hand.
    """

    ID = "TPU952"
    NAME = "bucket-lengths"
    FAMILY = "J"
    GRADE = Grade.UNSAFE
    MESSAGE = "every batch has a length of its own, and a TPU compiles for each"
    TESTS = False
    TRIGGERS = (
        "padding=True",
        "padding='longest'",
        'padding="longest"',
        "pad_sequence(",
        *sorted(f"{n}(" for n in _COLLATORS),
    )
    COVERS = ("J6",)
    VALID = (
        "from torch.nn.utils.rnn import pad_sequence\ndef unpack(flat, ends):\n    return pad_sequence([flat[a:b] for a, b in ends])\n",
        "from torch.nn.utils.rnn import pad_sequence\ndef f(xs):\n    n = up(max(map(len, xs)), SEQ_MULTI_OF)\n"
        "    return pad_sequence(xs)[:, :n]\n",
        "def encode(tokenizer, prompt, ids):\n    whole = tokenizer(prompt, padding='longest', return_tensors='pt').input_ids\n"
        "    if whole.shape[-1] > ids.shape[-1] and not torch.equal(ids, whole):\n"
        "        warn(tokenizer.batch_decode(whole[:, 9:]))\n",
        "def cut(tokenizer, texts, most):\n    ids = tokenizer(texts, padding='longest')['input_ids']\n    if ids.shape[-1] > most:\n"
        "        for i, text in enumerate(texts):\n            tokens = ids[i][2:-2]\n            warn(tokenizer.decode(tokens[most:]))\n",
        "def cut(tokenizer, texts):\n    untruncated_ids = tokenizer(texts, padding='longest')['input_ids']\n"
        "    tokens = strip(untruncated_ids)\n    warn(tokens)\n",
        "batch = tokenizer(texts, padding='max_length', max_length=128)\n",
        "batch = tokenizer(texts, padding=True, pad_to_multiple_of=8)\n",
        "conv = Conv(3, padding=True)\n",
    )
    INVALID = (
        Invalid(
            "batch = tokenizer(texts, padding=True, truncation=True)\n",
            "batch = tokenizer(texts, padding=True, truncation=True, pad_to_multiple_of=64)\n",
            unsafe=True,
        ),
        Invalid(
            "from transformers import DataCollatorWithPadding\ncollate = DataCollatorWithPadding(tokenizer)\n",
            "from transformers import DataCollatorWithPadding\ncollate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64)\n",
            unsafe=True,
        ),
        Invalid(
            "def embed(self, texts):\n    ids = self.tokenizer(texts, padding='longest', return_tensors='pt').input_ids\n"
            "    return self.encoder(ids)\n",
            None,
        ),
        Invalid("from torch.nn.utils.rnn import pad_sequence\nx = pad_sequence(xs, batch_first=True)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields tokenizers, collators and pad_sequence."""
        for call in module.nodes(ast.Call):
            if on_cuda_path(module, call):
                continue
            if _pads_to_longest(module, call) and keyword(call, "pad_to_multiple_of") is None:
                if _only_compared(module, call):
                    continue
                fix = (
                    None
                    if spread(call) or not _masks(module, call)
                    else Fix((add_keyword(module, call, f"pad_to_multiple_of={_STEP}"),))
                )
                yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=_NOTE)
        pads = (c for c in module.calls(*_PADS) if not on_cuda_path(module, c) and _for_batches(module, c))
        for call in first_in_functions(module, pads):
            note = _IN_MODEL if _in_model(module, call) else _FURTHER
            yield Match(*module.span(call), grade=Grade.ADVICE, note=note)


_FURTHER = f"pad the result further, to one of a few lengths such as multiples of {_STEP}"
_IN_MODEL = "pad up to the length of the model's padded input instead, which the batches can keep to a few"
_MULTIPLES = re.compile(r"(?i)(seq|len\w*)_multi|multiple_of|_multiple\b|round_up|next_power")


_BATCHES = re.compile(r"(?i)collat|batch|pad(?!_sequence)|__call__|forward|loader|dataset|step")


def _for_batches(module: Module, call: ast.Call) -> bool:
    """Whether the code around it is there to make or compute batches, of lengths that are not bucketed already."""
    names = [a.name for a in module.ancestors(call) if isinstance(a, ast.FunctionDef | ast.ClassDef)]
    around = not names or any(_BATCHES.search(name) for name in names)
    return around and not _bucketed(module, call)


def _bucketed(module: Module, call: ast.Call) -> bool:
    """Whether the function brings lengths to multiples of a number already."""
    function = module.function(call)
    return _MULTIPLES.search(module.text(function) if function is not None else module.source.text) is not None


def _in_model(module: Module, call: ast.Call) -> bool:
    """Whether it is in a class that computes: one with Module among its bases, or with a name such as those have."""
    holder = next((a for a in module.ancestors(call) if isinstance(a, ast.ClassDef)), None)
    bases = [dotted(base) or "" for base in holder.bases] if holder is not None else []
    return any(re.search(r"Module|Model|Layer|Block|Encoder|Decoder|Mixin", base) for base in bases)


def _masks(module: Module, call: ast.Call) -> bool:
    """Whether what pads and is not to count is told the model: by a mask, or with all the tokenizer answers."""
    scope = module.function(call)
    text = module.text(scope) if scope is not None else module.source.text
    return "mask" in text or "**" in text or scope is None


def _only_compared(module: Module, call: ast.Call) -> bool:
    """Whether the ids are looked at on the host only, by shape, ``torch.equal`` and decoding, and never computed with."""
    statement, scope = module.statement(call), module.function(call)
    if (
        not isinstance(statement, ast.Assign)
        or not isinstance(target := statement.targets[0], ast.Name)
        or scope is None
    ):
        return False
    if target.id.startswith("untruncated"):
        return True
    held = list(ast.walk(scope))
    parents = {child: node for node in held for child in ast.iter_child_nodes(node)}
    return _all_on_host(target.id, held, parents)


def _all_on_host(name: str, held: list[ast.AST], parents: dict[ast.AST, ast.AST]) -> bool:
    uses = [n for n in held if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(uses) and all(_on_host(parents[use], parents) or _part_on_host(use, held, parents) for use in uses)


def _part_on_host(use: ast.AST, held: list[ast.AST], parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a part of the ids gets a name of its own that is looked at on the host only."""
    parent = parents[use]
    if not isinstance(parent, ast.Subscript):
        return False
    while isinstance(parent, ast.Subscript):
        parent = parents[parent]
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    return (
        isinstance(target, ast.Name) and target.id != getattr(use, "id", "") and _all_on_host(target.id, held, parents)
    )


def _on_host(parent: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    if isinstance(parent, ast.Attribute):
        return parent.attr == "shape"
    while isinstance(parent, ast.Subscript):
        parent = parents[parent]
    function = parent.func if isinstance(parent, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("equal", "batch_decode", "decode", "len")


def _pads_to_longest(module: Module, call: ast.Call) -> bool:
    function = call.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if (module.qualify(function) or "").startswith("transformers.") and last in _COLLATORS:
        return True
    padding = keyword(call, "padding")
    if padding is None or "tokenizer" not in module.text(function).lower():
        return False
    value = padding.value
    return string(value) == "longest" or (isinstance(value, ast.Constant) and value.value is True)
