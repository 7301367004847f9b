"""The packages and repositories, pinned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """One package or repository of other people.

    Attributes:
        name: as on the package index, or of the repository.
        version: the release; of a repository the commit.
        repository: ``owner/name`` on GitHub; None for a wheel from the package index.
        tests: paths of the tests it ships that run with what is installed here, relative to its root.
        environment: variables that its tests need.
    """

    name: str
    version: str
    repository: str | None = None
    tests: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


_WHEELS = """
accelerate 1.12.0
deepspeed 0.3.1.dev5
denoising-diffusion-pytorch 2.3.4
diffusers 0.38.0
ema-pytorch 0.8.3
facenet-pytorch 2.6.0
kornia 0.9.0
lightning-fabric 2.6.6
monai 1.6.1
open-clip-torch 3.3.0
peft 0.21.2
pytorch-lightning 2.6.6
pytorch-metric-learning 2.9.0
segmentation-models-pytorch 0.6.0
sentence-transformers 6.2.0
speechbrain 1.1.2
timm 1.0.20
torch-geometric 2.8.1
torchaudio 2.11.1
torchmetrics 1.9.0
torchvision 0.29.1
trl 1.16.0
ultralytics 8.4.190
vit-pytorch 1.26.14
x-transformers 2.31.10
"""

PACKAGES: tuple[Package, ...] = (
    *(Package(name, version) for name, version in (line.split() for line in _WHEELS.split("\n") if line)),
    Package("nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291", "karpathy/nanoGPT"),
    Package(
        "minGPT",
        "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
        "karpathy/minGPT",
        tests=("tests",),
        environment=(("HF_HUB_OFFLINE", "1"),),
    ),
    Package("build-nanogpt", "6104ab1b53920f6e2159749676073ff7d815c1fa", "karpathy/build-nanogpt"),
    Package("pytorch-cifar", "49b7aa97b0c12fe0d4054e670403a16b6b834ddd", "kuangliu/pytorch-cifar"),
    Package("examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8", "pytorch/examples"),
    Package(
        "einops",
        "0.8.2",
        tests=("einops/tests",),
        environment=(("EINOPS_TEST_BACKENDS", "numpy,torch"), ("CUDA_VISIBLE_DEVICES", "")),
    ),
)
