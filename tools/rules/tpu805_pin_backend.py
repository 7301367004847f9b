"""TPU805: torch_tpu required without a version."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.requirements import FILES, requirements
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid


class PinBackend(TextRule):
    """``torch_tpu`` in any version.

    It is young: builds before 0.2 returned from synchronisation before compiled programs had run, and later ones changed
    what worked. It also fits certain PyTorch releases only. Reported; which version was tested is known to a person.
    """

    ID = "TPU805"
    NAME = "pin-backend"
    FAMILY = "R"
    GRADE = Grade.ADVICE
    MESSAGE = "torch_tpu changes between versions; say which one is meant"
    TRIGGERS = ("torch_tpu", "torch-tpu")
    COVERS = ("R2", "R7")
    FILES = FILES
    VALID = (
        Valid("torch==2.13\ntorch_tpu==0.2.0\n", "requirements.txt"),
        Valid("torch_tpu>=0.2,<0.3\n", "requirements.txt"),
    )
    INVALID = (
        Invalid("torch\ntorch_tpu\n", None, path="requirements.txt"),
        Invalid('dependencies = ["torch", "torch-tpu>=0.1"]\n', None, path="pyproject.toml"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields requirements without an upper bound."""
        for requirement in requirements(source):
            if requirement.name == "torch-tpu" and not any(c in requirement.spec for c in ("==", "<", "~=", "^")):
                note = "torch_tpu>=0.2,<0.3 goes with torch>=2.11,<=2.15"
                yield Match(requirement.start, requirement.end, note=note)
