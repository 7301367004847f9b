"""TPU832: float16 asked for on a launch line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.shell import FILES, INTERPRETERS, places
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_VALUE = re.compile(
    r"(?<![\w$-])--(?:mixed[-_]precision|precision|(?:torch[-_])?dtype|amp[-_]dtype)(?:=|[ \t]+)[\"']?"
    r"(fp16|float16|16-mixed|16-true)(?![\w.-])"
)
_SWITCH = re.compile(r"(?<![\w$-])(--(?:use[-_])?fp16)(?![\w=-])")
_WORDS = {"fp16": "bf16", "float16": "bfloat16", "16-mixed": "bf16-mixed", "16-true": "bf16-true"}


class SetLaunchPrecision(TextRule):
    """``accelerate launch --mixed_precision fp16``, ``--precision 16-mixed``, ``--dtype float16`` or ``--fp16``.

    TPUs compute in bfloat16, and fp16 needs loss scaling that the TPU backend has no kernels for. The unsafe fix writes
    the bfloat16 word for the same option, for CUDA too. The switch ``--fp16`` is reported: whether there is a ``--bf16``
    is the program's affair.
    """

    ID = "TPU832"
    NAME = "set-launch-precision"
    FAMILY = "C"
    GRADE = Grade.UNSAFE
    MESSAGE = "the launch line asks for float16; a TPU computes in bfloat16"
    TRIGGERS = ("fp16", "float16", "16-mixed", "16-true")
    COVERS = ("C13",)
    FILES = FILES
    INTERPRETERS = INTERPRETERS
    VALID = (
        Valid("accelerate launch --mixed_precision bf16 a.py\n# --fp16\npython a.py --fp16-opt-level O1\n", "run.sh"),
    )
    INVALID = (
        Invalid(
            "accelerate launch --mixed_precision fp16 train.py \\\n  --dtype=float16\n",
            "accelerate launch --mixed_precision bf16 train.py \\\n  --dtype=bfloat16\n",
            count=2,
            unsafe=True,
            path="run.sh",
        ),
        Invalid("python train.py --fp16\n", None, path="run.sh"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields options that name float16."""
        for match in places(source, _VALUE):
            start, end = match.span(1)
            note = "this changes the numbers on CUDA too, and needs a GPU that knows bfloat16"
            yield Match(start, end, fix=Fix((Edit(start, end, _WORDS[match.group(1)]),)), note=note)
        for match in places(source, _SWITCH):
            note = "give the program's bfloat16 switch (--bf16 in many) on a TPU"
            yield Match(*match.span(1), grade=Grade.ADVICE, note=note)
