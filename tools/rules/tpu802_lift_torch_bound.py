"""TPU802: a torch requirement that excludes every release the TPU backend works with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.requirements import FILES, allows, requirements
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

SUPPORTED = tuple((2, minor) for minor in range(11, 16))
"""Releases that torch_tpu 0.2 accepts (its own requirement: torch>=2.11,<=2.15)."""


_OTHER = re.compile(r"(?i)rocm|xpu|ipex|macos|mps|npu|hpu")
"""In the name of a requirements file: it is for a machine that is no TPU host whatever it says."""


class LiftTorchBound(TextRule):
    """``torch==2.1.0`` or ``torch<2.4`` cannot be installed beside torch_tpu, which needs torch 2.11 to 2.15.

    The unsafe fix asks for ``>=2.11,<=2.15``. It is unsafe because CUDA users get another release too; torchvision and
    torchaudio pins have to follow (they are named in the note). Conda's ``pytorch`` is reported only.
    Files named after another accelerator (``requirements_rocm.txt``) are left alone.
    """

    ID = "TPU802"
    NAME = "lift-torch-bound"
    FAMILY = "F"
    GRADE = Grade.UNSAFE
    MESSAGE = "torch is held below 2.11, the first release the TPU backend works with"
    TRIGGERS = ("torch",)
    REASON = "torch_tpu needs a PyTorch that older requirements exclude"
    FILES = FILES
    VALID = (
        Valid("torch\ntorch>=2.0\ntorch>=1.13,<3\ntorch==2.12.*\ntorch~=2.4\n", "requirements.txt"),
        Valid('dependencies = ["torch>=2.0", "torchmetrics==1.0"]\n[tool.torch]\nx = "1.0"\n', "pyproject.toml"),
        Valid("dependencies:\n  - pytorch>=2.0\n", "environment.yml"),
        Valid("torch==2.7.1+rocm6.3\n", "requirements_linux_rocm.txt"),
    )
    INVALID = (
        Invalid(
            "torch==2.1.0  # why\ntorch<2.4 ; python_version < '3.12'\n",
            "torch>=2.11,<=2.15  # why\ntorch>=2.11,<=2.15 ; python_version < '3.12'\n",
            count=2,
            unsafe=True,
            path="requirements.txt",
        ),
        Invalid(
            '[project]\ndependencies = [\n  "torch >= 1.9, < 2.0",\n]\n',
            '[project]\ndependencies = [\n  "torch >=2.11,<=2.15",\n]\n',
            unsafe=True,
            path="pyproject.toml",
        ),
        Invalid(
            '[tool.poetry.dependencies]\ntorch = "^1.13"\n',
            '[tool.poetry.dependencies]\ntorch = ">=2.11,<=2.15"\n',
            unsafe=True,
            path="pyproject.toml",
        ),
        Invalid("setup(install_requires=['torch~=2.0.1'])\n", "setup(install_requires=['torch>=2.11,<=2.15'])\n",
                unsafe=True, path="setup.py"),
        Invalid("dependencies:\n  - pytorch=1.13.1=py3.9_cuda11.7_cudnn8.5.0_0\n", None, path="environment.yml"),
    )  # fmt: skip

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields torch requirements that allow none of the supported releases."""
        if _OTHER.search(source.relative):
            return
        note = "torch_tpu needs torch 2.11 to 2.15; pins of torchvision and torchaudio have to follow"
        for requirement in requirements(source):
            if requirement.name not in ("torch", "pytorch") or not any(c.isdigit() for c in requirement.spec):
                continue
            if any(allows(requirement.spec, version) for version in SUPPORTED):
                continue
            fix = Fix((Edit(requirement.spec_start, requirement.end, ">=2.11,<=2.15"),))
            conda = requirement.name == "pytorch"
            yield Match(
                requirement.start,
                requirement.end,
                fix=None if conda else fix,
                grade=Grade.ADVICE if conda else None,
                note=note,
            )
