"""Moves every weight by one unit in the last place, which says how much rounding alone moves each number."""

from __future__ import annotations

from typing import Any

_SEEN = "_torchtpu_jittered"


class _Jitter:
    def __init__(self, torch: Any, seed: int) -> None:
        self.torch = torch
        self.generator = torch._C.Generator()
        self.generator.manual_seed(seed)
        self.handle: Any = None

    def parameter(self, parameter: Any) -> None:
        """Moves one parameter's elements up or down at random, once; zeros stay."""
        torch = self.torch
        if parameter.__dict__.get(_SEEN) or parameter.dtype not in (torch.float32, torch.float64):
            return
        parameter.__dict__[_SEEN] = True
        with torch.no_grad():
            plain = parameter.detach().cpu()
            up = torch.rand(plain.shape, generator=self.generator) < 0.5
            towards = torch.where(up, torch.inf, -torch.inf).to(plain.dtype)
            moved = torch.where(plain == 0, plain, torch.nextafter(plain, towards))
            parameter.copy_(moved.to(parameter.device))

    def module(self, module: Any, _arguments: Any) -> None:
        """Moves the parameters of a module that is called for the first time, and of all inside it."""
        if module.__dict__.get(_SEEN):
            return
        for inner in module.modules():
            inner.__dict__[_SEEN] = True
        for parameter in module.parameters():
            self.parameter(parameter)

    def step(self, optimizer: Any, *_arguments: Any) -> None:
        """Moves the parameters that no module call has reached, and ends the looking."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.parameter(parameter)


def install(torch: Any, seed: int) -> None:
    """Moves weights when their module is first called, or else at the first optimizer step."""
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    jitter = _Jitter(torch, seed)
    jitter.handle = register_module_forward_pre_hook(jitter.module)
    register_optimizer_step_pre_hook(jitter.step)
