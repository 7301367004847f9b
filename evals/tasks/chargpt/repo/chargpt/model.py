"""The model. Shapes: B batch, T characters, W width, H heads, V alphabet."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class CausalMixing(nn.Module):
    """Lets every position look at the ones before it."""

    def __init__(self, width: int, num_heads: int, dropout: float):
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x_BTW):
        B, T, W = x_BTW.shape
        heads = self.query_key_value(x_BTW).view(B, T, 3, self.num_heads, W // self.num_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        return self.out(mixed.transpose(1, 2).reshape(B, T, W))


class Layer(nn.Module):
    def __init__(self, width: int, num_heads: int, dropout: float):
        super().__init__()
        self.norm_mixing = nn.LayerNorm(width)
        self.mixing = CausalMixing(width, num_heads, dropout)
        self.norm_thinking = nn.LayerNorm(width)
        self.thinking = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x_BTW):
        x_BTW = x_BTW + self.drop(self.mixing(self.norm_mixing(x_BTW)))
        return x_BTW + self.drop(self.thinking(self.norm_thinking(x_BTW)))


class CharGPT(nn.Module):
    def __init__(self, alphabet: int, width: int, num_layers: int, num_heads: int, context: int, dropout: float):
        super().__init__()
        self.context = context
        self.symbols = nn.Embedding(alphabet, width)
        self.places = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(width, num_heads, dropout) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, alphabet, bias=False)
        self.apply(self._start)
        for layer in self.layers:
            # The sum of all branches keeps its size, however many layers there are.
            nn.init.normal_(layer.mixing.out.weight, std=0.02 / math.sqrt(2 * num_layers))
        self.head.weight = self.symbols.weight

    @staticmethod
    def _start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, codes_BT, targets_BT=None):
        place_T = torch.arange(codes_BT.shape[1], device=codes_BT.device)
        x_BTW = self.drop(self.symbols(codes_BT) + self.places(place_T))
        for layer in self.layers:
            x_BTW = layer(x_BTW)
        logits_BTV = self.head(self.norm(x_BTW))
        if targets_BT is None:
            return logits_BTV, None
        return logits_BTV, F.cross_entropy(logits_BTV.flatten(0, 1).float(), targets_BT.flatten())

    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def decay_groups(self, weight_decay: float):
        """Matrices shrink, vectors (biases, norms) do not."""
        matrices = [p for p in self.parameters() if p.dim() >= 2]
        vectors = [p for p in self.parameters() if p.dim() < 2]
        return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]

    @torch.no_grad()
    def write(self, codes_BT, num_characters: int, temperature: float = 1.0):
        for _ in range(num_characters):
            logits_BTV, _ = self(codes_BT[:, -self.context :])
            chances_BV = torch.softmax(logits_BTV[:, -1] / temperature, dim=-1)
            codes_BT = torch.cat([codes_BT, torch.multinomial(chances_BV, 1)], dim=1)
        return codes_BT
