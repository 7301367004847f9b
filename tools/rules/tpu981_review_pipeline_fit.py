"""TPU981: whole diffusion pipelines on one device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, fact
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_OFFLOAD = frozenset({"enable_model_cpu_offload", "enable_sequential_cpu_offload"})
_PIPELINE = re.compile(r"\w*Pipeline")
_NOTE_FIT = (
    "count the parameters' bytes of all parts against the chip's memory (16 GB on v5e); keep text encoders on the CPU, "
    "or one part a chip"
)
_NOTE_OFFLOAD = "it moves parts to CUDA as they are used; on a TPU move the part that is used with .to(device)"


class ReviewPipelineFit(PythonRule):
    """``FluxPipeline.from_pretrained(...).to(device)`` puts text encoders, transformer and decoder on one chip.

    Large ones do not fit, and diffusers' own remedy, ``enable_model_cpu_offload()``, knows CUDA-like devices only.

    Reported: pipelines from diffusers that are moved as a whole, and the offloading switches.
    """

    ID = "TPU981"
    NAME = "review-pipeline-fit"
    FAMILY = "N"
    GRADE = Grade.ADVICE
    MESSAGE = "a whole pipeline may not fit one chip"
    TRIGGERS = ("Pipeline", ".to(", ".cuda(", "cpu_offload(")
    REQUIRES = ("diffusers", "Pipeline")
    PATTERN = r"Pipeline\.from_(pretrained|single_file)\(|cpu_offload\("
    COVERS = ("N8",)
    VALID = (
        "from diffusers import FluxPipeline\npipe = FluxPipeline.from_pretrained(n)\npipe.vae.to(device)\n",
        "from transformers import pipeline\npipe = pipeline('x').to(device)  # diffusers Pipeline\n",
    )
    INVALID = (
        Invalid("from diffusers import FluxPipeline\npipe = FluxPipeline.from_pretrained(n)\npipe.to('cuda')\n", None),
        Invalid(
            "from diffusers import DiffusionPipeline\npipe = DiffusionPipeline.from_pretrained(n).to(device)\n", None
        ),
        Invalid(
            "from diffusers import FluxPipeline\npipe = FluxPipeline.from_pretrained(n)\npipe.enable_model_cpu_offload()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields moves of whole pipelines, and switches for offloading."""
        for call in module.nodes(ast.Call):
            function = call.func
            if not isinstance(function, ast.Attribute) or on_cuda_path(module, call):
                continue
            if function.attr in _OFFLOAD:
                message = "offloading moves parts to CUDA as they are used"
                yield Match(*module.span(call), message, note=_NOTE_OFFLOAD)
            elif function.attr in ("to", "cuda") and _is_pipeline(module, function.value):
                yield Match(*module.span(call), note=_NOTE_FIT)


def _is_pipeline(module: Module, value: ast.expr) -> bool:
    return _makes(module, value) or dotted(value) in _pipelines(module)


def _makes(module: Module, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr not in ("from_pretrained", "from_single_file"):
        return False
    name = module.qualify(value.func.value) or ""
    return name.startswith("diffusers.") and _PIPELINE.fullmatch(name.rpartition(".")[2]) is not None


@fact
def _pipelines(module: Module) -> frozenset[str]:
    made = (s for s in module.nodes(ast.Assign) if _makes(module, s.value))
    return frozenset(name for s in made for target in s.targets if (name := dotted(target)))
