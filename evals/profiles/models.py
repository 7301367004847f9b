"""The models that are profiled, and how many operations a step of each has by arithmetic alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evals.ecosystem import checkout
from evals.ecosystem.projects import PROJECTS
from tools.patch import patch_steps

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True)
class Model:
    """A program to profile.

    Attributes:
        name: As results call it.
        title: For people.
        command: What to run.
        lay_out: Puts the program into a folder.
        flops: Operations of a step's matrix products by arithmetic; a multiply-add counts as two.
        convention: How they are counted.
    """

    name: str
    title: str
    command: str
    lay_out: Callable[[Path, Path | None], None]
    flops: float
    convention: str


def _program(name: str) -> Callable[[Path, Path | None], None]:
    def lay_out(folder: Path, _sources: Path | None) -> None:
        shutil.copytree(PROGRAMS / name, folder, ignore=shutil.ignore_patterns("__pycache__"))

    return lay_out


def _nanogpt(folder: Path, sources: Path | None) -> None:
    """A pinned checkout, migrated by the rules, with random tokens for a data set."""
    import numpy as np

    project = next(project for project in PROJECTS if project.repository.endswith("/nanoGPT"))
    checkout.make(project, folder, sources)
    for _ in patch_steps(folder):
        continue
    data = folder / "data" / "openwebtext"
    data.mkdir(exist_ok=True)
    for name in ("train", "val"):
        np.random.RandomState(0).randint(0, 50257, 200_000).astype(np.uint16).tofile(data / f"{name}.bin")


def gpt_flops(layers: int, width: int, heads_width: int, vocabulary: int, batch: int, length: int) -> float:
    """A step of a GPT: three products forward and backward a weight, seven a pair of attention's two."""
    weights = layers * 12 * width**2 + vocabulary * width
    attention = layers * 2 * batch * length**2 * heads_width
    return 6.0 * weights * batch * length + 2.0 * attention * 3.5


def llama_flops(batch: int, length: int) -> float:
    """A step of the Llama of `programs/llama`."""
    width, inner, layers, keys, vocabulary = 2048, 8192, 16, 512, 128256
    weights = layers * (2 * width**2 + 2 * width * keys + 3 * width * inner) + vocabulary * width
    attention = layers * 2 * batch * length**2 * width
    return 6.0 * weights * batch * length + 2.0 * attention * 3.5


def _taps(size: int, kernel: int, stride: int) -> int:
    """Pairs of positions of output and kernel that meet the image, of one dimension, padded by half the kernel."""
    outputs, edge = -(-size // stride), kernel // 2
    return sum(
        min(kernel, size + edge - at * stride) - max(0, edge - at * stride) for at in range(outputs)
    )  # fmt: skip


def resnet_flops(batch: int) -> float:
    """A step of ResNet-50 on 224 x 224 images; products with padding are not counted."""
    stem = 2.0 * _taps(224, 7, 2) ** 2 * 3 * 64
    total, size, inputs = 0.0, 56, 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(count):
            step = stride if number == 0 else 1
            out = size // step
            total += 2.0 * (
                size**2 * inputs * width + _taps(size, 3, step) ** 2 * width**2 + out**2 * width * width * 4
            )
            total += 2.0 * out**2 * inputs * width * 4 if number == 0 else 0.0
            size, inputs = out, width * 4
    total += 2.0 * 2048 * 1000
    # The images need no gradient.
    return batch * (3 * total + 2 * stem)


_SQUARE = "6 operations a weight and token, and attention over the whole square of scores"
MODELS = (
    Model(
        "nanogpt",
        "nanoGPT as it is, GPT-2 124M, batch 8 x 1024, bfloat16 autocast, AdamW",
        "python train.py --eval_iters=1 --gradient_accumulation_steps=1 --batch_size=8 --compile=False"
        " --dtype=bfloat16",
        _nanogpt,
        gpt_flops(12, 768, 768, 50304, 8, 1024),
        _SQUARE,
    ),
    Model(
        "resnet50",
        "ResNet-50, batch 64, 224 x 224, bfloat16 autocast, SGD",
        "python train.py --batch-size 64",
        _program("resnet50"),
        resnet_flops(64),
        "each convolution three times (the first twice), padding not counted",
    ),
    Model(
        "llama",
        "Hugging Face Llama, 1.24 billion parameters made on the meta device, batch 4 x 2048, bfloat16, AdamW",
        "python train.py --batch-size 4 --length 2048",
        _program("llama"),
        llama_flops(4, 2048),
        _SQUARE,
    ),
    Model(
        "llama-batch-1",
        "the same Llama, batch 1 x 2048",
        "python train.py --batch-size 1 --length 2048",
        _program("llama"),
        llama_flops(1, 2048),
        _SQUARE,
    ),
)
