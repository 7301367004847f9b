"""TPU803: a requirement that cannot be installed, or does nothing, without CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.requirements import FILES, Requirement, requirements
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

BUILT = frozenset({"apex", "flash-attn", "inplace-abn", "xformers", "vllm-flash-attn", "mamba-ssm", "causal-conv1d"})
"""Packages whose installation compiles CUDA code, or fails without a CUDA build of torch."""
IDLE = frozenset({"bitsandbytes", "triton", "cupy", "pynvml", "gpustat", "cudatoolkit", "cudnn", "pytorch-cuda",
                  "faiss-gpu", "onnxruntime-gpu", "dgl-cuda", "tensorrt", "torch-tensorrt"})  # fmt: skip
"""Packages that install anywhere (or are conda's own) and are of no use without CUDA."""


class MarkCudaPackage(TextRule):
    """flash-attn, xformers, apex or inplace-abn in a requirements file stop the installation on a host without CUDA.

    The unsafe fix turns such a line of a pip requirements file into a comment that says how to install it on CUDA. In
    pyproject, setup and conda files, and for packages that install but are of no use (bitsandbytes, triton, nvidia-*),
    it is reported: an extra such as ``[cuda]`` keeps CUDA users working.

    No environment marker can tell a TPU host from a CUDA host, so there is no safe fix.
    """

    ID = "TPU803"
    NAME = "mark-cuda-package"
    FAMILY = "F"
    GRADE = Grade.ADVICE
    MESSAGE = "this package is for CUDA only"
    TRIGGERS = (*sorted(BUILT | IDLE), "flash_attn", "inplace_abn", "nvidia-", "cupy-")
    COVERS = ("F6", "F16")
    FILES = FILES
    VALID = (
        Valid("# flash-attn\nnumpy\n", "requirements.txt"),
        Valid('name = "triton-free"\ndescription = "no apex here"\n', "pyproject.toml"),
    )
    INVALID = (
        Invalid(
            "numpy\nflash_attn>=2.5 ; python_version > '3.8'\nnvidia-cudnn-cu12==9.1\n",
            "numpy\n# only for CUDA: flash_attn>=2.5 ; python_version > '3.8'\nnvidia-cudnn-cu12==9.1\n",
            count=2,
            unsafe=True,
            path="requirements.txt",
        ),
        Invalid('dependencies = ["flash-attn", "bitsandbytes>=0.41"]\n', None, count=2, path="pyproject.toml"),
        Invalid("dependencies:\n  - cudatoolkit=11.3\n  - pytorch-cuda=12.1\n", None, count=2, path="environment.yml"),
        Invalid("setup(install_requires=['inplace-abn'])\n", None, path="setup.py"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields requirements of CUDA-only packages."""
        for requirement in requirements(source):
            if requirement.name in BUILT:
                yield self._built(source, requirement)
            elif requirement.name in IDLE or requirement.name.startswith(("nvidia-", "cupy-")):
                note = "of no use without CUDA; keep it in an extra or a file of its own for CUDA hosts"
                yield Match(requirement.start, requirement.end, note=note)

    def _built(self, source: SourceFile, requirement: Requirement) -> Match:
        note = "its installation fails without CUDA; on CUDA install it by itself, or through an extra"
        if not (requirement.alone and source.relative.endswith((".txt", ".in"))):
            return Match(requirement.start, requirement.end, note=note)
        start = requirement.start
        fix = Fix((Edit(start, start, "# only for CUDA: "),))
        return Match(start, requirement.end, fix=fix, grade=Grade.UNSAFE, note=note)
