"""What is written on the device is what the same weights write token by token without a cache in float32."""
import torch

from serve.cli import load
from serve.model import generate
from serve.text import encode

model = load(5)
prompt = encode("a lamp")
one, _ = generate(model, prompt, 6)
again, _ = generate(model, prompt, 6)
assert one == again and len(one) == 6, "two greedy runs differ"
fed = list(prompt)
for expected in one:
    nxt, _ = generate(model, fed, 1)
    fed += nxt
agree = sum(a == b for a, b in zip(fed[len(prompt):], one))
assert agree >= 5, f"{agree} of 6 tokens agree with generation without a cache"
