"""Small models of the kinds people train: a language model, a convolutional classifier."""
# ruff: noqa: D103, N812  a case is named by what it does; F is its name everywhere

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from evals.conformance.bench import Bench, weights


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.mix(self.before(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class _LanguageModel(nn.Module):
    def __init__(self, words: int = 96, width: int = 48, length: int = 24) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(_Block(width, 3), _Block(width, 3))
        self.final = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        places = self.places(torch.arange(tokens.shape[1], device=tokens.device))
        hidden = self.final(self.blocks(self.words(tokens) + places))
        # The embedding doubles as output projection, so its gradient has two sources.
        logits = F.linear(hidden, self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def language_model(bench: Bench) -> Any:
    model, tokens = bench.module(_LanguageModel), bench.tokens(3, 24, below=96)
    forward, targets = bench.compiled(model), tokens.roll(-1, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = bench.train(model, optimizer, lambda: forward(tokens, targets), clip=1.0)
    return [loss.item() for loss in losses], weights(model)


def language_model_autocast(bench: Bench) -> Any:
    model, tokens = bench.module(_LanguageModel), bench.tokens(3, 24, below=96)
    targets = tokens.roll(-1, 1)

    def loss(tokens: torch.Tensor, targets: torch.Tensor) -> Any:
        with torch.autocast(bench.device, dtype=torch.bfloat16):
            return model(tokens, targets)

    forward, optimizer = bench.compiled(loss), torch.optim.SGD(model.parameters(), lr=0.1)
    return bench.train(model, optimizer, lambda: forward(tokens, targets), steps=2)


def autocast_result_types(bench: Bench) -> Any:
    layer, data = bench.module(lambda: nn.Linear(6, 6)), bench.normal(3, 6)
    with torch.autocast(bench.device, dtype=torch.bfloat16):
        hidden = layer(data)
        outputs = (
            hidden,
            hidden.softmax(-1),
            F.layer_norm(hidden, (6,)),
            hidden.sum(),
            F.mse_loss(hidden, hidden),
        )
    return [output.dtype == torch.bfloat16 for output in outputs]


def image_classifier(bench: Bench) -> Any:
    model = bench.module(
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 12, 3, stride=2, groups=3),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(12, 4),
        )
    )
    images, labels = bench.normal(4, 3, 14, 14), bench.on([0, 1, 2, 3])
    forward = bench.compiled(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = bench.train(model, optimizer, lambda: F.cross_entropy(forward(images), labels))
    model.eval()
    return losses, model(images), list(model.buffers()), weights(model)
