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
        tests: paths of its tests that run in minutes with what is installed, relative to its root.
        suite: where the tests come from if they are not in it: ``sdist``, or ``owner/name@commit`` on GitHub.
        environment: variables that its tests need.
        sdist: whether the index has its source only.
    """

    name: str
    version: str
    repository: str | None = None
    tests: tuple[str, ...] = ()
    suite: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    sdist: bool = False


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

_UNSEEN = """
catalyst 22.4
coqui-tts 0.28.0
easyocr 1.7.2
espnet 202511
fastai 2.8.12
flair 0.15.1
gpytorch 1.15.2
lpips 0.1.4
mmengine 0.10.7
nnunetv2 2.8.1
opacus 1.6.0
pyannote-audio 4.0.7
pytorch-ignite 0.5.5
stable-baselines3 2.9.2
tianshou 2.0.1
"""
"""Wheels that no rule had been tried on when the sixth sample was drawn."""

_SUITES: dict[str, tuple[str, tuple[str, ...]]] = {
    "accelerate": (
        "sdist",
        (
            "tests/test_dataclasses.py",
            "tests/test_data_loader.py",
            "tests/test_hooks.py",
            "tests/test_kwargs_handlers.py",
            "tests/test_memory_utils.py",
            "tests/test_offload.py",
            "tests/test_optimizer.py",
            "tests/test_scheduler.py",
        ),
    ),
    "ema-pytorch": ("sdist", ("tests",)),
    "peft": ("sdist", ("tests/test_bufferdict.py", "tests/test_mapping.py")),
    "segmentation-models-pytorch": ("sdist", ("tests/test_losses.py",)),
    "timm": ("huggingface/pytorch-image-models@aa4b5850c1543fa488abf260f18390eda46cf85d", ("tests/test_utils.py",)),
    "torch-geometric": ("pyg-team/pytorch_geometric@5c6461b2305ad068a6d61165b3c55852a11aaa41", ("test/nn/norm",)),
    "vit-pytorch": ("sdist", ("tests",)),
}
"""Tests that a wheel leaves out: where they come from, and those that are run."""


def _wheel(name: str, version: str) -> Package:
    suite, tests = _SUITES.get(name, ("", ()))
    offline = (("HF_HUB_OFFLINE", "1"), ("CUDA_VISIBLE_DEVICES", "")) if tests else ()
    return Package(name, version, tests=tests, suite=suite, environment=offline)


PACKAGES: tuple[Package, ...] = (
    *(_wheel(*line.split()) for line in _WHEELS.split("\n") if line),
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
    Package("dino", "7c446df5b9f45747937fb0d72314eb9f7b66930a", "facebookresearch/dino"),
    Package("mae", "efb2a8062c206524e35e47d04501ed4f544c0ae8", "facebookresearch/mae"),
    Package("guided-diffusion", "22e0df8183507e13a7813f8d38d51b072ca1e67c", "openai/guided-diffusion"),
    Package("stylegan3", "c233a919a6faee6e36a316ddd4eddababad1adf9", "NVlabs/stylegan3"),
    Package("taming-transformers", "3ba01b241669f5ade541ce990f7650a3b8f65318", "CompVis/taming-transformers"),
    *(_wheel(*line.split()) for line in _UNSEEN.split("\n") if line),
    Package("basicsr", "1.4.2", sdist=True),
    Package("fairscale", "0.4.13", sdist=True),
    Package("openai-whisper", "20250625", sdist=True),
    Package("yolox", "0.3.0", sdist=True),
    Package("CLIP", "d05afc436d78f1c48dc0dbf8e5980a9d471f35f6", "openai/CLIP"),
    Package("ConvNeXt", "048efcea897d999aed302f2639b6270aedf8d4c8", "facebookresearch/ConvNeXt"),
    Package("DiT", "ed81ce2229091fd4ecc9a223645f95cf379d582b", "facebookresearch/DiT"),
    Package("Swin-Transformer", "f82860bfb5225915aca09c3227159ee9e1df874d", "microsoft/Swin-Transformer"),
    Package("detr", "29901c51d7fe8712168b8d0d64351170bc0f83e0", "facebookresearch/detr"),
    Package("faster-rcnn.pytorch", "f9d984d27b48a067b29792932bcb5321a39c1f09", "jwyang/faster-rcnn.pytorch"),
    Package("stable-diffusion", "21f890f9da3cfbeaba8e2ac3c425ee9e998d5229", "CompVis/stable-diffusion"),
    Package("yolov5-repo", "5081342f04fb287fc2e5f2b5a4e06752b7937b1c", "ultralytics/yolov5"),
    Package("ng-video-lecture", "52201428ed7b46804849dea0b3ccf0de9df1a5c3", "karpathy/ng-video-lecture"),
)
