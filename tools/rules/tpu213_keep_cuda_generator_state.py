"""TPU213: the state of CUDA's random generators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_api import handled_by
from tools.code.cuda_calls import calls, elsewhere, guarded, statement_of
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.rules.base import Invalid, Match, PythonRule

_SEED = "torch.initial_seed"
_NOTE = (
    "only CUDA's state is saved and restored, so resuming on another accelerator continues with other random numbers; "
    "PyTorch 2.13 has no call that reads a TPU's state (torch.accelerator.random comes later)"
)


class KeepCudaGeneratorState(PythonRule):
    """``torch.cuda.get_rng_state()`` fails without CUDA.

    Reading gives None elsewhere and restoring is for CUDA only, so that checkpoints of a CUDA run keep what they had. What
    is missing on other accelerators is said in the finding. ``get_rng_state_all`` is an empty list without CUDA and
    ``set_rng_state_all`` takes it, so these stay. ``torch.cuda.initial_seed()`` becomes ``torch.initial_seed()`` there.

    Not covered: states handed through functions of the user's own.
    """

    ID = "TPU213"
    NAME = "keep-cuda-generator-state"
    FAMILY = "H"
    MESSAGE = "the state of CUDA's random generator is read or set, which fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("H2", "H4")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    s = torch.cuda.get_rng_state()\n",
        "import torch\nstates = torch.cuda.get_rng_state_all()\ntorch.cuda.set_rng_state_all(states)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nstate = {'cpu': torch.get_rng_state(), 'cuda': torch.cuda.get_rng_state()}\n",
            "import torch\nstate = {'cpu': torch.get_rng_state(), "
            "'cuda': torch.cuda.get_rng_state() if torch.cuda.is_available() else None}\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.set_rng_state(checkpoint['cuda'])\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.set_rng_state(checkpoint['cuda'])\n",
        ),
        Invalid(
            "import torch\nseed = torch.cuda.initial_seed()\n",
            "import torch\nseed = torch.cuda.initial_seed() if torch.cuda.is_available() else torch.initial_seed()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls that fail without CUDA off the CUDA-only path."""
        found = list(calls(module, handled_by(self.ID) - {"get_rng_state_all", "set_rng_state_all"}))
        statements: list[ast.stmt] = [s for call, _ in found if (s := statement_of(module, call))]
        fixes = guarded(module, statements)
        for call, name in found:
            if name == "initial_seed":
                fix = elsewhere(module, call, f"{spell(module, _SEED)}()", _SEED)
                yield Match(*module.span(call), fix=fix)
                continue
            statement = statement_of(module, call)
            fix = fixes[statement] if statement else elsewhere(module, call, "None")
            yield Match(*module.span(call), fix=fix, note=_NOTE)
