"""Training steps of a small network under the usual optimizers."""
# ruff: noqa: D103, N812  a case is named by what it does; F is its name everywhere

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from evals.conformance.bench import Bench, weights


def _network() -> nn.Module:
    return nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 6))


def _classify(bench: Bench, kind: Any, **options: Any) -> Any:
    model = bench.module(_network)
    inputs, labels = bench.normal(12, 24), bench.on(torch.arange(12) % 6)
    forward = bench.compiled(lambda x, y: F.cross_entropy(model(x), y))
    optimizer = kind(model.parameters(), **options)
    return bench.train(model, optimizer, lambda: forward(inputs, labels)), weights(model)


def sgd(bench: Bench) -> Any:
    return _classify(bench, torch.optim.SGD, lr=0.2)


def sgd_nesterov_decay(bench: Bench) -> Any:
    return _classify(bench, torch.optim.SGD, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02)


def adamw(bench: Bench) -> Any:
    return _classify(bench, torch.optim.AdamW, lr=2e-3)


def adamw_fused(bench: Bench) -> Any:
    return _classify(bench, torch.optim.AdamW, lr=2e-3, fused=True)


def adamw_foreach(bench: Bench) -> Any:
    return _classify(bench, torch.optim.AdamW, lr=2e-3, foreach=True)


def adam_capturable(bench: Bench) -> Any:
    return _classify(bench, torch.optim.Adam, lr=2e-3, capturable=not bench.is_reference)


def less_common(bench: Bench) -> Any:
    optim = torch.optim
    kinds = (optim.RMSprop, optim.Adagrad, optim.NAdam, optim.RAdam)
    return [_classify(bench, kind, lr=1e-3)[0] for kind in kinds]


def whole_step_in_one_function(bench: Bench) -> Any:
    model = bench.module(lambda: nn.Linear(9, 9))
    optimizer, data = torch.optim.SGD(model.parameters(), 0.1), bench.normal(5, 9)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = bench.compiled(step)
    return [run().detach() for _ in range(3)], weights(model)
