from torch import Tensor, nn
import torch
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_m = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.proj = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        h = self.norm_a(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.silu(self.up(self.norm_m(x))))


class Decoder(nn.Module):
    def __init__(self, symbols: int = 24, width: int = 32, layers: int = 2, heads: int = 2, context: int = 16) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
