"""One-file decoder with a static cache."""

import torch
from torch import nn

from serve.text import SYMBOLS


class Cache:
    """Keys and values of all layers: [layers, 2, heads, length, head_dim]."""

    def __init__(self, layers: int, heads: int, length: int, head_dim: int):
        self.data = torch.zeros(layers, 2, heads, length, head_dim, device="cuda", dtype=torch.float16)
        self.length = length

    def write(self, layer: int, at: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
        self.data[layer, 0].index_copy_(1, at, k)
        self.data[layer, 1].index_copy_(1, at, v)
        return self.data[layer, 0], self.data[layer, 1]


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x, cache: Cache, layer: int, at):
        n = x.shape[0]
        q, k, v = (t.view(n, self.heads, self.head_dim).transpose(0, 1) for t in self.qkv(x).chunk(3, dim=-1))
        keys, values = cache.write(layer, at, k, v)
        scores = (q.float() @ keys.float().transpose(1, 2)) * self.head_dim**-0.5
        hidden = torch.arange(cache.length, device="cuda")[None, :] > at[:, None]
        scores = scores.masked_fill(hidden[None], float("-inf"))
        mixed = (scores.softmax(-1) @ values.float()).to(x.dtype)
        x = x + self.out(mixed.transpose(0, 1).reshape(n, -1))
        return x + self.ff(x)


class Writer(nn.Module):
    def __init__(self, width: int = 32, heads: int = 2, layers: int = 2, length: int = 32):
        super().__init__()
        self.shape = (layers, heads, length, width // heads)
        self.embed = nn.Embedding(len(SYMBOLS), width)
        self.place = nn.Embedding(length, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, len(SYMBOLS))

    def forward(self, ids, cache: Cache, at):
        x = self.embed(ids) + self.place(at)
        for i, layer in enumerate(self.layers):
            x = layer(x, cache, i, at)
        return self.head(x[-1]).float()


@torch.inference_mode()
def generate(model: Writer, prompt: list[int], tokens: int, temperature: float = 0.0, seed: int = 0):
    """Returns the ids that were written and the mean of their log-probabilities."""
    cache = Cache(*model.shape)
    noise = torch.Generator(device="cuda").manual_seed(seed)
    ids = torch.tensor(prompt, device="cuda")
    at = torch.arange(len(prompt), device="cuda")
    written, total = [], 0.0
    for _ in range(tokens):
        log_probs = torch.log_softmax(model(ids, cache, at), dim=-1)
        if temperature:
            choice = torch.multinomial((log_probs / temperature).softmax(-1), 1, generator=noise)
        else:
            choice = log_probs.argmax(-1, keepdim=True)
        total += log_probs[choice].item()
        written.append(choice.item())
        ids, at = choice, at[-1:] + 1
    return written, total / tokens
