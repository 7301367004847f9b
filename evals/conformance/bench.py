"""What a conformance case is given: a device, a compiler for the mode under test, and data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

Mode = Literal["eager", "fuse", "compile"]


@dataclass(frozen=True)
class Bench:
    """One side of a comparison.

    Attributes:
        device: ``cpu`` for the reference, ``tpu`` for the device under test.
        mode: How the device executes; the reference is always eager.
    """

    device: str
    mode: Mode = "eager"

    @property
    def is_reference(self) -> bool:
        """Whether this is the CPU's side."""
        return self.device == "cpu"

    def compiled(self, function: Any) -> Any:
        """Returns the function as the mode under test runs it."""
        if self.mode != "compile" or self.is_reference:
            return function
        return torch.compile(function, backend="tpu")

    def on(self, data: Any) -> torch.Tensor:
        """Moves a tensor, or makes one from nested lists, on the device."""
        return (data if isinstance(data, torch.Tensor) else torch.tensor(data)).to(self.device)

    def normal(self, *shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
        """Returns the same normal draws on either side."""
        generator = torch.Generator().manual_seed(1000 * seed + 17 * len(shape) + sum(shape))
        return self.on(torch.randn(*shape, generator=generator).to(dtype))

    def tokens(self, *shape: int, below: int, seed: int = 0) -> torch.Tensor:
        """Returns the same integers on either side."""
        generator = torch.Generator().manual_seed(seed)
        return self.on(torch.randint(below, shape, generator=generator))

    def module(self, build: Callable[[], Any]) -> Any:
        """Builds a module with the same weights on either side and moves it."""
        torch.manual_seed(7)
        return build().to(self.device)

    def train(
        self,
        model: nn.Module,
        optimizer: Any,
        loss: Callable[[], Any],
        steps: int = 3,
        clip: float | None = None,
    ) -> list[Any]:
        """Takes training steps and returns the losses."""
        losses = []
        for _ in range(steps):
            value = loss()
            optimizer.zero_grad()
            value.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            losses.append(value.detach())
        return losses


def gradients(model: nn.Module) -> list[Any]:
    """Returns the gradients of a module's parameters."""
    return [parameter.grad for parameter in model.parameters()]


def weights(model: nn.Module) -> list[Any]:
    """Returns a module's parameters as plain tensors."""
    return [parameter.detach() for parameter in model.parameters()]


def backward_of_squares(outputs: Any) -> None:
    """Runs the backward pass of the sum of squares of all outputs."""
    total = sum((out.float() ** 2).sum() for out in outputs)
    assert isinstance(total, torch.Tensor)
    total.backward()
