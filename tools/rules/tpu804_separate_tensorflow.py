"""TPU804: full TensorFlow beside torch."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.requirements import FILES, requirements
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid


class SeparateTensorflow(TextRule):
    """TensorFlow on a TPU host opens the TPU library itself; the process then dies or torch finds no chip.

    ``tensorflow-cpu`` has the same modules (summaries, data sets) and leaves the TPU alone. The fix is unsafe because
    TensorFlow code of the repository would lose the GPU. Files without torch have no finding.
    """

    ID = "TPU804"
    NAME = "separate-tensorflow"
    FAMILY = "I"
    GRADE = Grade.UNSAFE
    MESSAGE = "full TensorFlow takes the TPU away from torch in the same process"
    TRIGGERS = ("tensorflow",)
    COVERS = ("I6",)
    FILES = FILES
    VALID = (
        Valid("tensorflow==2.15\nkeras\n", "requirements.txt"),
        Valid("torch\ntensorflow-cpu\ntensorflow-datasets\n", "requirements.txt"),
    )
    INVALID = (
        Invalid("torch\ntensorflow>=2.9 # logs\n", "torch\ntensorflow-cpu>=2.9 # logs\n", unsafe=True,
                path="requirements.txt"),
        Invalid('dependencies = ["torch", "tensorflow-gpu==2.9"]\n', 'dependencies = ["torch", "tensorflow-cpu==2.9"]\n',
                unsafe=True, path="pyproject.toml"),
    )  # fmt: skip

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields TensorFlow requirements of files that require torch too."""
        every = list(requirements(source))
        if not any(requirement.name in ("torch", "pytorch") for requirement in every):
            return
        for requirement in every:
            if requirement.name in ("tensorflow", "tensorflow-gpu"):
                end = requirement.start + len(requirement.name)
                fix = Fix((Edit(requirement.start, end, "tensorflow-cpu"),))
                note = "TensorFlow code of this repository would run on the CPU"
                yield Match(requirement.start, requirement.end, fix=fix, note=note)
