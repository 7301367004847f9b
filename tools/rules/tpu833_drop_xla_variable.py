"""TPU833: environment variables of torch_xla in scripts and container files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.shell import FILES, INTERPRETERS, places
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_VARIABLE = re.compile(
    r"(?<![\w${-])(XLA_USE_BF16|XLA_DOWNCAST_BF16|XLA_DOWNCAST_FP16|XLA_USE_F16|XLA_USE_32BIT_LONG|XRT_TPU_CONFIG|XRT_\w+"
    r"|PJRT_DEVICE|XLA_IR_DEBUG|XLA_HLO_DEBUG)(?==|[ \t]|:)"
)


class DropXlaVariable(TextRule):
    """``XLA_USE_BF16=1``, ``PJRT_DEVICE=TPU`` or ``XRT_TPU_CONFIG=...`` speak to torch_xla, not to torch_tpu.

    Precision by variable no longer exists: the program sets it with ``torch.autocast`` or ``.to(torch.bfloat16)``. Reported
    only, because a script that runs under both backends still needs the line.
    """

    ID = "TPU833"
    NAME = "drop-xla-variable"
    FAMILY = "I"
    GRADE = Grade.ADVICE
    MESSAGE = "a variable of torch_xla, which torch_tpu does not read"
    TRIGGERS = ("XLA_", "XRT_", "PJRT_DEVICE")
    COVERS = ("I4",)
    FILES = (*FILES, "Dockerfile*", "*.dockerfile", "*.env", ".env")
    INTERPRETERS = INTERPRETERS
    VALID = (Valid("# XLA_USE_BF16=1\nexport XLA_FLAGS=--xla_dump_to=/tmp\necho $PJRT_DEVICE\n", "run.sh"),)
    INVALID = (
        Invalid("export XLA_USE_BF16=1\nPJRT_DEVICE=TPU python a.py\n", None, count=2, path="run.sh"),
        Invalid("ENV XRT_TPU_CONFIG localservice;0;localhost:51011\n", None, path="Dockerfile"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields assignments to torch_xla's variables."""
        for match in places(source, _VARIABLE):
            precise = "BF16" in match.group(1) or "16" in match.group(1)
            note = "set the dtype in the program instead" if precise else "delete the line for torch_tpu"
            yield Match(*match.span(1), note=note)
