"""TPU922: only CUDA's generators seeded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.cuda_calls import calls
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SEEDS_ALL = re.compile(r"torch\.(random\.)?manual_seed\(|\b(seed_everything|set_seed|manual_seed)\(")
_NOTE = "add torch.manual_seed(seed), which seeds every device; it also changes what the CPU draws"


class SeedEveryDevice(PythonRule):
    """``torch.cuda.manual_seed(seed)`` alone leaves every other device unseeded; without CUDA it does nothing.

    Beside ``torch.manual_seed`` it is redundant and stays.

    Not covered: a seed set in another file.
    """

    ID = "TPU922"
    NAME = "seed-every-device"
    FAMILY = "H"
    GRADE = Grade.ADVICE
    MESSAGE = "only CUDA is seeded; other devices draw other numbers in every run"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("H1",)
    VALID = (
        "import torch\ntorch.manual_seed(1)\ntorch.cuda.manual_seed(1)\n",
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.manual_seed_all(1)\n",
    )
    INVALID = (Invalid("import torch\ntorch.cuda.manual_seed_all(1)\n", None),)

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls that seed CUDA in a file that seeds nothing else."""
        found = list(calls(module, {"manual_seed", "manual_seed_all"}))
        if found and not _SEEDS_ALL.search(re.sub(r"cuda(\.random)?\.manual_seed", "", module.source.text)):
            for call, _ in found:
                yield Match(*module.span(call), note=_NOTE)
