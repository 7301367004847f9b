"""Random numbers: distributions, seeds, generators and saved states."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

from typing import Any

import torch

from evals.conformance.bench import Bench


def moments(bench: Bench) -> Any:
    torch.manual_seed(0)
    count, device = 20_000, bench.device
    normal, uniform = torch.randn(count, device=device), torch.rand(count, device=device)
    coins = torch.bernoulli(torch.full((count,), 0.3, device=device))
    dice = torch.randint(0, 10, (count,), device=device).float()
    shuffled = torch.randperm(100, device=device)
    return [
        abs(normal.mean().item()) < 0.05,
        abs(normal.std().item() - 1) < 0.05,
        abs(uniform.mean().item() - 0.5) < 0.03,
        abs(coins.mean().item() - 0.3) < 0.03,
        abs(dice.mean().item() - 4.5) < 0.2,
        sorted(shuffled.tolist()) == list(range(100)),
    ]


def distributions_are_finite(bench: Bench) -> Any:
    torch.manual_seed(0)
    device = bench.device
    odds, ones = torch.tensor([0.1, 0.2, 0.7], device=device), torch.ones(3, device=device)
    draws = [
        # First, because it deadlocked and what follows may be refused.
        torch.normal(torch.zeros(4, device=device), torch.ones(4, device=device)),
        torch.multinomial(odds, 2),
        torch.multinomial(odds, 20, replacement=True),
        torch.empty(10, device=device).exponential_(),
        torch.empty(10, device=device).uniform_(-1, 1),
        torch.empty(5, device=device).log_normal_(),
        torch.empty(5, device=device).geometric_(0.5),
        torch.poisson(ones),
        torch.distributions.Gamma(ones, ones).sample(),
        torch.nn.init.trunc_normal_(torch.empty(4, 4, device=device)),
    ]
    return [bool(torch.isfinite(draw.float()).all()) for draw in draws]


def seeds_repeat(bench: Bench) -> Any:
    device = bench.device

    def seeded(generator: torch.Generator | None = None) -> Any:
        if generator is None:
            torch.manual_seed(11)
        else:
            generator.manual_seed(3)
        return torch.randn(40, device=device, generator=generator)

    first, second = seeded(), seeded()
    following = torch.randn(40, device=device)
    own = torch.Generator(device=device)
    return [
        bool((first == second).all()),
        bool((first != following).any()),
        bool((seeded(own) == seeded(own)).all()),
    ]


def state_is_restored(bench: Bench) -> Any:
    if bench.is_reference:
        return [True]
    with torch.random.fork_rng(devices=[0], device_type=bench.device):
        first = torch.randn(5, device=bench.device)
    return [bool((first == torch.randn(5, device=bench.device)).all())]
