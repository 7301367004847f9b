"""A small causal transformer. Shapes: B batch, T tokens, W width, V vocabulary."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Attention(nn.Module):
    """Lets every token look at the ones before it."""

    def __init__(self, width, num_heads, context, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)).bool())

    def forward(self, x):
        """Mixes tokens."""
        B, T, W = x.shape  # noqa: N806
        q, k, v = self.qkv(x).split(W, dim=2)
        q = q.view(B, T, self.num_heads, W // self.num_heads).transpose(1, 2)
        k = k.view(B, T, self.num_heads, W // self.num_heads).transpose(1, 2)
        v = v.view(B, T, self.num_heads, W // self.num_heads).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))
        mixed = self.drop(F.softmax(scores, dim=-1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(B, T, W))


class Block(nn.Module):
    """Attention and a two-layer network, each beside a residual path."""

    def __init__(self, width, num_heads, context, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, num_heads, context, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        """Adds both branches."""
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Model(nn.Module):
    """Token and position embeddings, blocks, and a head tied to the embedding."""

    def __init__(self, vocabulary=33, width=32, num_layers=2, num_heads=4, context=16, dropout=0.1):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, num_heads, context, dropout) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.start)
        self.head.weight = self.tokens.weight

    @staticmethod
    def start(module):
        """Draws the weights of one module."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, tokens):
        """Returns logits of the next token."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def groups(self, decay):
        """Matrices shrink, vectors do not."""
        matrices = [p for p in self.parameters() if p.dim() >= 2]
        vectors = [p for p in self.parameters() if p.dim() < 2]
        return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
