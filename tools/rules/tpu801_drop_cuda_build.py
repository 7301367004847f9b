"""TPU801: a requirement that names a CUDA build of torch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.requirements import FILES, requirements
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_INDEX = re.compile(r"https?://download\.pytorch\.org/whl/(?:nightly/|test/)?cu\d+[^\s\"']*")
_LOCAL = re.compile(r"\+cu\d+")


class DropCudaBuild(TextRule):
    """``torch==2.1.0+cu121`` and ``--extra-index-url https://download.pytorch.org/whl/cu121`` pin a CUDA build.

    Without the local version the same release comes from PyPI, whose Linux wheel is a CUDA build too; that is an unsafe
    fix, because on Windows it is not. The index line is reported only: on a TPU host the CPU index
    (``https://download.pytorch.org/whl/cpu``) saves gigabytes, a CUDA host needs the line as it is.
    """

    ID = "TPU801"
    NAME = "drop-cuda-build"
    FAMILY = "F"
    GRADE = Grade.ADVICE
    MESSAGE = "a CUDA build of torch is named; a TPU host needs the plain release"
    TRIGGERS = ("+cu", "/whl/")
    COVERS = ("F16",)
    FILES = (*FILES, "Dockerfile*", "*.Dockerfile", "*.dockerfile", "*.sh")
    VALID = (
        Valid("torch==2.12.0\n--extra-index-url https://download.pytorch.org/whl/cpu\n", "requirements.txt"),
        Valid("# torch==2.1.0+cu121\n", "requirements.txt"),
    )
    INVALID = (
        Invalid(
            "numpy\ntorch==2.12.0+cu130  # pinned\n",
            "numpy\ntorch==2.12.0  # pinned\n",
            unsafe=True,
            path="requirements.txt",
        ),
        Invalid("--extra-index-url https://download.pytorch.org/whl/cu121\ntorch\n", None, path="requirements-gpu.txt"),
        Invalid("RUN pip install torch --index-url https://download.pytorch.org/whl/cu118\n", None, path="Dockerfile"),
        Invalid(
            "dependencies:\n  - pip:\n    - torch==2.12.0+cu130\n",
            "dependencies:\n  - pip:\n    - torch==2.12.0\n",
            unsafe=True,
            path="environment.yml",
        ),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields local CUDA versions and CUDA wheel indexes."""
        for requirement in requirements(source):
            local = _LOCAL.search(requirement.spec)
            if local:
                start, end = requirement.spec_start + local.start(), requirement.spec_start + local.end()
                note = "the plain release from PyPI is a CUDA build on Linux too, but not on Windows"
                yield Match(start, end, fix=Fix((Edit(start, end, ""),)), grade=Grade.UNSAFE, note=note)
        for match in _INDEX.finditer(source.text):
            line, column = source.position(match.start())
            if "#" not in source.line(line)[: column - 1]:
                note = "on a TPU host install torch from PyPI or https://download.pytorch.org/whl/cpu"
                yield Match(match.start(), match.end(), "a wheel index for CUDA is named", note=note)
