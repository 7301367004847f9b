"""Seeds and states of CUDA's random numbers, of which there are none of its own.

All random numbers come from the CPU generator, in the order of the program. A seed for CUDA alone is left
out of it: beside ``torch.manual_seed`` it says the same again, and a program for another device, where
``torch.cuda.manual_seed`` does nothing, must draw the same numbers.
"""

from __future__ import annotations

from typing import Any

from torchtpu.proof import wrapping


def install(torch: Any) -> None:
    """Replaces the functions of torch.cuda about random numbers."""
    get_state, set_state, seed = torch.get_rng_state, torch.set_rng_state, torch.initial_seed

    def set_if_ours(new_state: Any, device: Any = None) -> None:  # noqa: ARG001  torch's signature
        # A state saved by a GPU has another size and means nothing here.
        if new_state.numel() == get_state().numel():
            set_state(new_state)

    def set_first(new_states: Any) -> None:
        for state in list(new_states)[:1]:
            set_if_ours(state)

    for module in (torch.cuda, torch.cuda.random):
        wrapping.answer(module, {"manual_seed": None, "manual_seed_all": None, "seed": None, "seed_all": None})
        module.initial_seed = seed
        module.get_rng_state = lambda device="cuda": get_state()  # noqa: ARG005
        module.get_rng_state_all = lambda: [get_state()]
        module.set_rng_state, module.set_rng_state_all = set_if_ours, set_first
