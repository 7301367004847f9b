"""Shapes, wide types, operators, parameters, memory, numbers, DataParallel, compilation, timing: programs that fail, and what becomes of them."""

# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rows import Shown, check_runs, check_text

SHOWN = [
    Shown(
        "J3",
        ("TPU951",),
        """\
import torch
import torch.nn.functional as F

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
logits, labels = torch.randn(2, 4, 5).to(device), torch.randint(5, (2, 4)).to(device)
losses = []
for hidden in range(1, 5):
    mask = torch.arange(8).view(2, 4).to(device) >= hidden
    losses.append(F.cross_entropy(logits[mask], labels[mask]).item())
result = (len(shapes), round(sum(losses), 3))
""",
        """\
import torch
import torch.nn.functional as F

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
logits, labels = torch.randn(2, 4, 5).to(device), torch.randint(5, (2, 4)).to(device)
losses = []
for hidden in range(1, 5):
    mask = torch.arange(8).view(2, 4).to(device) >= hidden
    losses.append(F.cross_entropy(logits.flatten(0, -2), labels.masked_fill(~mask, -100).flatten()).item())
result = (len(shapes), round(sum(losses), 3))
""",
        before="(4, 7.161)",
        after="(1, 7.161)",
        unsafe=True,
        setup='''\
import torch
import torch.nn.functional as F

plain = getattr(F, "plain_cross_entropy", F.cross_entropy)
F.plain_cross_entropy, shapes = plain, set()


def cross_entropy(logits, labels):
    """The loss, with a note of the shapes it was given."""
    shapes.add(tuple(logits.shape))
    return plain(logits, labels)


F.cross_entropy = cross_entropy
''',
    ),
    Shown(
        "J6",
        ("TPU952",),
        """\
texts = ["x" * length for length in (3, 17, 30, 45, 60, 70, 100)]
shapes = {tokenizer([text], padding=True).shape for text in texts}
result = len(shapes)
""",
        """\
texts = ["x" * length for length in (3, 17, 30, 45, 60, 70, 100)]
shapes = {tokenizer([text], padding=True, pad_to_multiple_of=64).shape for text in texts}
result = len(shapes)
""",
        before="7",
        after="2",
        unsafe=True,
        on="cpu",
        setup='''\
import torch


def tokenizer(texts, padding, pad_to_multiple_of=1):
    """Pads as tokenizers of Transformers do."""
    longest = max(map(len, texts))
    length = -(-longest // pad_to_multiple_of) * pad_to_multiple_of
    return torch.zeros(len(texts), length)


''',
    ),
    Shown(
        "J13",
        ("TPU957",),
        """\
import torch

graphs = []


def count(graph, inputs):
    graphs.append(graph)
    return graph.forward


weight = torch.nn.Parameter(torch.ones(2))
weight.grad = torch.ones(2)
optimizer = torch.optim.SGD([weight], lr=0.1)


@torch.compile(backend=count, dynamic=False)
def update():
    optimizer.step()


for number in range(6):
    optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
    update()
result = len(graphs)
""",
        None,
        before="6",
        after="1",
        by_hand="""\
import torch

graphs = []


def count(graph, inputs):
    graphs.append(graph)
    return graph.forward


weight = torch.nn.Parameter(torch.ones(2))
weight.grad = torch.ones(2)
optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1))


@torch.compile(backend=count, dynamic=False)
def update():
    optimizer.step()


for number in range(6):
    optimizer.param_groups[0]["lr"].fill_(0.1 / (number + 1))
    update()
result = len(graphs)
""",
        on="cpu",
    ),
    Shown(
        "K1",
        ("TPU961",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def rope_table(length, dim, x):
    steps = torch.arange(0, dim, 2, dtype=torch.float64, device=x.device) / dim
    angles = torch.outer(torch.arange(length, device=x.device), 1.0 / 10000**steps)
    return angles.cos()


table = rope_table(64, 16, torch.ones(1, device=device))
exact = rope_table(64, 16, torch.ones(1))
result = (table.dtype, (table.cpu().double() - exact.double()).abs().max().item() < 1e-4)
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def rope_table(length, dim, x):
    steps = torch.arange(0, dim, 2, dtype=torch.float64 if x.device.type in ("cpu", "cuda") else torch.float32, device=x.device) / dim
    angles = torch.outer(torch.arange(length, device=x.device), 1.0 / 10000**steps)
    return angles.cos()


table = rope_table(64, 16, torch.ones(1, device=device))
exact = rope_table(64, 16, torch.ones(1))
result = (table.dtype, (table.cpu().double() - exact.double()).abs().max().item() < 1e-4)
""",
        before="(torch.float64, True)",
        after="(torch.float32, True)",
    ),
    Shown(
        "K10",
        ("TPU964",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
batch = {"image": torch.ones(2, 3, dtype=torch.float64), "label": torch.tensor([0, 2])}
batch = {k: v.to(device, dtype=torch.float32) for k, v in batch.items()}
loss = torch.nn.functional.cross_entropy(batch["image"], batch["label"])
result = (batch["image"].dtype, batch["label"].dtype, round(loss.item(), 3))
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
batch = {"image": torch.ones(2, 3, dtype=torch.float64), "label": torch.tensor([0, 2])}
batch = {k: v.to(device, dtype=torch.float32 if v.is_floating_point() else v.dtype) for k, v in batch.items()}
loss = torch.nn.functional.cross_entropy(batch["image"], batch["label"])
result = (batch["image"].dtype, batch["label"].dtype, round(loss.item(), 3))
""",
        before="RuntimeError: ",
        after="(torch.float32, torch.int64, 1.099)",
        unsafe=True,
    ),
    Shown(
        "L3",
        ("TPU971",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
table = torch.nn.Embedding(5, 3, sparse=True).to(device)
optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
start = table.weight.detach().cpu().clone()
table(torch.tensor([1, 2], device=device)).sum().backward()
optimizer.step()
moved = (table.weight.detach().cpu() - start).abs().sum(1)
result = [round(value, 2) for value in moved.tolist()]
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
table = torch.nn.Embedding(5, 3, sparse=DEVICE_TYPE in ("cpu", "cuda")).to(device)
optimizer = (torch.optim.SparseAdam if DEVICE_TYPE in ("cpu", "cuda") else torch.optim.Adam)(table.parameters(), lr=0.1)
start = table.weight.detach().cpu().clone()
table(torch.tensor([1, 2], device=device)).sum().backward()
optimizer.step()
moved = (table.weight.detach().cpu() - start).abs().sum(1)
result = [round(value, 2) for value in moved.tolist()]
""",
        before="sparse operators are not supported on TPU yet",
        after="[0.0, 0.3, 0.3, 0.0, 0.0]",
    ),
    Shown(
        "M1",
        ("TPU901",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.to(device)
start = model.weight.detach().clone()
model(torch.ones(4, 2, device=device)).sum().backward()
optimizer.step()
result = round((model.weight - start).abs().sum().item(), 4)
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = torch.nn.Linear(2, 1)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = model.weight.detach().clone()
model(torch.ones(4, 2, device=device)).sum().backward()
optimizer.step()
result = round((model.weight - start).abs().sum().item(), 4)
""",
        before="0.0",
        after="0.8",
    ),
    Shown(
        "M2",
        ("TPU902",),
        """\
import torch
import torch.nn as nn

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9, bias=False)
        self.head.weight = self.table.weight


model = Model().to(device)
result = len(list(model.parameters()))
""",
        """\
import torch
import torch.nn as nn

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9, bias=False)
        self.head.weight = self.table.weight

    def _apply(self, *args, **kwargs):
        # A move to some accelerators makes new parameters; weights that were tied before it stay tied.
        tied = self.head.weight is self.table.weight
        moved = super()._apply(*args, **kwargs)
        if tied:
            self.head.weight = self.table.weight
        return moved


model = Model().to(device)
result = len(list(model.parameters()))
""",
        before="2",
        after="1",
    ),
    Shown(
        "M9",
        ("TPU903",),
        """\
import torch
import torch.nn as nn

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.tril(torch.ones(4, 4))

    def forward(self, x):
        return x * self.mask


result = Model().to(device)(torch.ones(4, 4, device=device)).sum().item()
""",
        None,
        before="RuntimeError: Expected all tensors to be on the same device",
        after="10.0",
        by_hand="""\
import torch
import torch.nn as nn

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)), persistent=False)

    def forward(self, x):
        return x * self.mask


result = Model().to(device)(torch.ones(4, 4, device=device)).sum().item()
""",
    ),
    Shown(
        "N8",
        ("TPU981",),
        """\
from diffusers import FluxPipeline

pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev")
pipe.to(device)
""",
        None,
    ),
    Shown(
        "O2",
        ("TPU991",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
scores = torch.zeros(1, 3, device=device, dtype=torch.bfloat16)
hidden = torch.ones(1, 3, device=device, dtype=torch.bool)
scores = scores.masked_fill(hidden, torch.finfo(torch.float32).min)
result = bool(scores.softmax(-1).isfinite().all())
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
scores = torch.zeros(1, 3, device=device, dtype=torch.bfloat16)
hidden = torch.ones(1, 3, device=device, dtype=torch.bool)
scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
result = bool(scores.softmax(-1).isfinite().all())
""",
        before="RuntimeError: masked_fill(): expected value to be representable as bfloat16",
        after="True",
        unsafe=True,
    ),
    Shown(
        "O3",
        ("TPU992",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
weight = torch.ones(1, device=device, dtype=torch.bfloat16, requires_grad=True)
total = 0
for step in range(300):
    loss = weight.sum()
    loss.backward()
    total += loss
result = float(total)
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
weight = torch.ones(1, device=device, dtype=torch.bfloat16, requires_grad=True)
total = 0
for step in range(300):
    loss = weight.sum()
    loss.backward()
    total += loss.detach().float()
result = float(total)
""",
        before="256.0",
        after="300.0",
        unsafe=True,
    ),
    Shown(
        "P1",
        ("TPU701",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = torch.nn.DataParallel(torch.nn.Linear(2, 2)).to(device)
result = sorted(model.state_dict())
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = (torch.nn.DataParallel(torch.nn.Linear(2, 2)) if DEVICE_TYPE in ("cpu", "cuda") else torch.nn.Linear(2, 2)).to(device)
result = sorted(model.state_dict())
""",
        before="['module.bias', 'module.weight']",
        after="['bias', 'weight']",
    ),
    Shown(
        "Q1",
        ("TPU711",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
double = torch.compile(lambda x: x * 2, mode="max-autotune", dynamic=False)
result = double(torch.ones(2, device=device)).sum().item()
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
double = torch.compile(lambda x: x * 2, mode="max-autotune" if DEVICE_TYPE in ("cpu", "cuda") else None, dynamic=False)
result = double(torch.ones(2, device=device)).sum().item()
""",
        before="Unexpected keyword arguments",
        after="4.0",
    ),
    Shown(
        "R1",
        ("TPU209", "TPU206"),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
y = torch.ones(8, 8, device=device) @ torch.ones(8, 8, device=device)
end.record()
torch.cuda.synchronize()
result = start.elapsed_time(end) >= 0
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
start, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)
start.record()
y = torch.ones(8, 8, device=device) @ torch.ones(8, 8, device=device)
end.record()
if torch.accelerator.is_available():
    torch.accelerator.synchronize()
result = start.elapsed_time(end) >= 0
""",
        before=("RuntimeError: Tried to instantiate dummy base class Event", "RuntimeError: Found no NVIDIA driver"),
        after="True",
    ),
]


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.row)
def test_rules_find_and_mend_it(case: Shown) -> None:
    check_text(case)


def test_runs_without_an_accelerator(tmp_path: Path) -> None:
    check_runs(SHOWN, "cpu", tmp_path)


@pytest.mark.slow
def test_runs_on_the_device(tmp_path: Path) -> None:
    check_runs(SHOWN, "tpu", tmp_path)
