"""TPU811: a container that is built on CUDA or asks for GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_PLACES = (
    (
        re.compile(r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?(\S*(?:nvidia/|nvcr\.io/|cuda|-gpu)\S*)", re.MULTILINE | re.IGNORECASE),
        "the image is built on CUDA",
        "for a TPU host build a second target from python:3.11-slim (or newer) with torch and torch_tpu from PyPI",
    ),
    (
        re.compile(r"(?<![\w-])(--gpus[= ]\S+|--runtime[= ]nvidia)"),
        "the container asks for GPUs",
        "a TPU host needs --privileged --net=host (or the TPU device files) instead",
    ),
    (
        re.compile(r"^[ \t]*(?:runtime|driver)[ \t]*:[ \t]*[\"']?(nvidia)[\"']?[ \t]*\r?$", re.MULTILINE),
        "the service asks for GPUs",
        "put the GPU reservation in an override file that only CUDA hosts use",
    ),
    (
        re.compile(r"\b(NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES)\b"),
        "a setting of NVIDIA's container runtime",
        "it has no effect on a TPU host and may stay for CUDA hosts",
    ),
    (
        re.compile(r"\b(TORCH_CUDA_ARCH_LIST|FORCE_CUDA)\b"),
        "CUDA kernels are compiled into the image",
        "leave the step out of a TPU image; it needs nvcc",
    ),
)  # fmt: skip


class ChooseBaseImage(TextRule):
    """``FROM nvidia/cuda``, ``FROM pytorch/pytorch:...-cuda...``, ``--gpus`` and NVIDIA's variables in container files.

    Reported only: the image is what CUDA users run. The note says what a TPU image needs.
    """

    ID = "TPU811"
    NAME = "choose-base-image"
    FAMILY = "F"
    GRADE = Grade.ADVICE
    MESSAGE = "a container is made for CUDA"
    TRIGGERS = ("nvidia", "NVIDIA", "cuda", "CUDA", "gpu", "nvcr")
    COVERS = ("F14",)
    FILES = ("Dockerfile*", "*.Dockerfile", "*.dockerfile", "Containerfile*", "docker-compose*.y*ml", "compose*.y*ml",
             "devcontainer.json")  # fmt: skip
    VALID = (
        Valid("# FROM nvidia/cuda:12\nFROM python:3.11-slim\nRUN pip install torch\n", "Dockerfile"),
        Valid("services:\n  train:\n    image: python\n", "docker-compose.yml"),
    )
    INVALID = (
        Invalid(
            "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04 AS base\nENV NVIDIA_VISIBLE_DEVICES=all\n",
            None,
            count=2,
            path="Dockerfile",
        ),
        Invalid("FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime\n", None, path="docker/Dockerfile.train"),
        Invalid("services:\n  train:\n    runtime: nvidia\n", None, path="docker-compose.yml"),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields images, options and variables that are for CUDA."""
        for pattern, message, note in _PLACES:
            for match in pattern.finditer(source.text):
                line, column = source.position(match.start(1))
                if "#" not in source.line(line)[: column - 1]:
                    yield Match(*match.span(1), message, note=note)
