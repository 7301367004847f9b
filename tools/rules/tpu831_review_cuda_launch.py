"""TPU831: a launch script that speaks to CUDA, NCCL or NVIDIA's tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.shell import FILES, INTERPRETERS, places
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_PLACES = (
    (
        re.compile(r"#SBATCH[ \t]+(--(?:gres|gpus|gpus-per-node|gpus-per-task|gpu-bind|partition)[= ]\S*(?:gpu|[0-9])\S*|-G[ \t]+\S+)"),
        "the batch job asks for GPUs",
        "a TPU partition or queue has a request of its own; keep this line in the script for CUDA",
    ),
    (
        re.compile(r"(?<![\w$-])(--gres=gpu\S*|--gpus(?:-per-(?:node|task))?[= ]\d+)"),
        "the command asks for GPUs",
        "leave it out, or ask for TPU chips in the launcher's own way",
    ),
    (
        re.compile(r"(?<![\w$-])(--?device[= ][\"']?cuda(?::\d+)?[\"']?)(?![\w.-])"),
        "the command asks for the device cuda",
        "leave the option out where the program chooses by itself, or give the program's word for the accelerator",
    ),
    (
        re.compile(r"(?<![\w$-])(--(?:dist[-_])?backend[= ][\"']?nccl[\"']?)(?![\w.-])"),
        "the command asks for nccl",
        "leave the option out; on a TPU the process group's backend is tpu_dist",
    ),
    (
        re.compile(r"(?<![\w${-])((?:CUDA_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|PYTORCH_CUDA_ALLOC_CONF)=)"),
        "a variable that only CUDA reads",
        "it has no effect on a TPU; one process drives one chip there",
    ),
    (
        re.compile(r"(?<![\w${-])(NCCL_\w+=)"),
        "a variable that only NCCL reads",
        "it has no effect on a TPU and may stay for CUDA hosts",
    ),
    (
        re.compile(r"(?:^|[;&|(`]|\$\()[ \t]*(nvidia-smi)\b", re.MULTILINE),
        "nvidia-smi is not there on a TPU host",
        "call it only where it exists: command -v nvidia-smi >/dev/null && nvidia-smi",
    ),
)  # fmt: skip


class ReviewCudaLaunch(TextRule):
    """``CUDA_VISIBLE_DEVICES=``, ``--gres=gpu``, ``#SBATCH --gpus``, ``--device cuda``, ``NCCL_*`` and ``nvidia-smi``.

    Reported only: launch scripts are written for one cluster, and a TPU run has its own. Variables that are merely read
    (``$CUDA_VISIBLE_DEVICES``) have no finding.
    """

    ID = "TPU831"
    NAME = "review-cuda-launch"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "a launch script is made for CUDA"
    TRIGGERS = ("CUDA_", "NCCL_", "gpu", "-G ", "cuda", "nccl", "nvidia-smi")
    FILES = FILES
    INTERPRETERS = INTERPRETERS
    REASON = "launch scripts ask the scheduler for GPUs; found in public repositories"
    VALID = (
        Valid("# CUDA_VISIBLE_DEVICES=0\npython train.py --device auto\necho $CUDA_VISIBLE_DEVICES\n", "run.sh"),
        Valid("command -v nvidia-smi >/dev/null && true\n", "run.sh"),
        Valid("#!/usr/bin/env python\nx = 'CUDA_VISIBLE_DEVICES=0'\n", "run"),
    )
    INVALID = (
        Invalid("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py\n", None, path="run.sh"),
        Invalid(
            "#!/bin/bash\n#SBATCH --gres=gpu:4\n#SBATCH --gpus-per-node 4\nnvidia-smi\n", None, count=3, path="job"
        ),
        Invalid(
            "export NCCL_DEBUG=INFO\npython a.py --device=cuda:0 --dist-backend nccl\n", None, count=3, path="a.sh"
        ),
        Invalid("srun --gres=gpu:1 python a.py\n", None, path="job.slurm"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields requests, options, variables and commands that are for CUDA."""
        taken: list[tuple[int, int]] = []
        for pattern, message, note in _PLACES:
            for match in places(source, pattern):
                start, end = match.span(1)
                if not any(start < last and first < end for first, last in taken):
                    taken.append((start, end))
                    yield Match(start, end, message, note=note)
