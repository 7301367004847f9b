"""Checkpoints, libraries with CUDA kernels, data loading, random numbers, torch_xla: programs that fail, and what becomes of them."""

# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rows import Shown, check_runs, check_text

_TAGGED = r'''
import io, os, tempfile, zipfile
import torch


def tagged(place):
    """A file whose tensor says it is on a device of another machine."""
    plain = io.BytesIO()
    torch.save({"weight": torch.ones(1, 3)}, plain)
    path = os.path.join(tempfile.mkdtemp(), "model.pt")
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X" + len(place).to_bytes(4, "little") + place.encode())
            target.writestr(name, data)
    return path


'''.lstrip()

SHOWN = [
    Shown(
        "E1",
        ("TPU501",),
        """\
import torch

model = torch.nn.Linear(3, 1, bias=False)
model.load_state_dict(torch.load(path))
result = model.weight.sum().item()
""",
        """\
import torch

model = torch.nn.Linear(3, 1, bias=False)
model.load_state_dict(torch.load(path, map_location="cpu"))
result = model.weight.sum().item()
""",
        before="RuntimeError: Attempting to deserialize object on a CUDA device",
        after="3.0",
        on="cpu",
        setup=_TAGGED + 'path = tagged("cuda:0")\n',
    ),
    Shown(
        "E4",
        ("TPU501", "TPU503"),
        """\
import torch

model = torch.nn.Linear(3, 1, bias=False).to("cpu")
model.load_state_dict(torch.load(path))
torch.save({"model": model.state_dict()}, path + ".new")
result = model.weight.sum().item()
""",
        """\
import torch

model = torch.nn.Linear(3, 1, bias=False).to("cpu")
model.load_state_dict(torch.load(path, map_location="cpu"))
torch.save({"model": model.state_dict()}, path + ".new")
result = model.weight.sum().item()
""",
        before="RuntimeError: don't know how to restore data location of torch.storage.UntypedStorage (tagged with tpu:0)",
        after="3.0",
        on="cpu",
        setup=_TAGGED + 'path = tagged("tpu:0")\n',
    ),
    Shown(
        "F1",
        ("TPU911", "TPU912"),
        """\
import torch
from flash_attn import flash_attn_func

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
q, k, v = (torch.randn(2, 6, 4, 8).to(device) for _ in range(3))
out = flash_attn_func(q, k, v, causal=True)
scores = torch.einsum("blhd,bmhd->bhlm", q, k) / 8**0.5
scores = scores.masked_fill(torch.ones(6, 6, dtype=torch.bool, device=device).triu(1), -1e9)
exact = torch.einsum("bhlm,bmhd->blhd", scores.softmax(-1), v)
result = (out - exact).abs().max().item() < 1e-5
""",
        '''\
import torch
if torch.cuda.is_available():
    from flash_attn import flash_attn_func
else:

    def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
        """Attention by PyTorch, with lengths before heads as flash_attn has them."""
        q, k, v = q.transpose(1, 2), k.transpose(1, 2).to(q.dtype), v.transpose(1, 2).to(q.dtype)
        mask = None
        if causal and q.shape[2] != k.shape[2]:
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, mask, dropout_p, causal and mask is None, scale=softmax_scale, enable_gqa=q.shape[1] != k.shape[1]
        )
        return out.transpose(1, 2)

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
q, k, v = (torch.randn(2, 6, 4, 8).to(device) for _ in range(3))
out = flash_attn_func(q, k, v, causal=True)
scores = torch.einsum("blhd,bmhd->bhlm", q, k) / 8**0.5
scores = scores.masked_fill(torch.ones(6, 6, dtype=torch.bool, device=device).triu(1), -1e9)
exact = torch.einsum("bhlm,bmhd->blhd", scores.softmax(-1), v)
result = (out - exact).abs().max().item() < 1e-5
''',
        before="ModuleNotFoundError: No module named 'flash_attn'",
        after="True",
    ),
    Shown(
        "F3",
        ("TPU919",),
        """\
import torch

try:
    import xformers.ops

    HAS_XFORMERS = True
except ImportError:
    HAS_XFORMERS = False


def attention(q, k, v):
    if HAS_XFORMERS:
        return xformers.ops.memory_efficient_attention(q, k, v)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)


device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
x = torch.ones(1, 4, 2, 8, device=device)
result = attention(x, x, x).shape
""",
        """\
import torch

try:
    import xformers.ops

    HAS_XFORMERS = torch.cuda.is_available()
except ImportError:
    HAS_XFORMERS = False


def attention(q, k, v):
    if HAS_XFORMERS:
        return xformers.ops.memory_efficient_attention(q, k, v)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)


device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
x = torch.ones(1, 4, 2, 8, device=device)
result = attention(x, x, x).shape
""",
        before="NotImplementedError: No operator found for `memory_efficient_attention_forward`",
        after="torch.Size([1, 4, 2, 8])",
        setup="""\
import sys, types


def memory_efficient_attention(q, k, v):
    raise NotImplementedError("No operator found for `memory_efficient_attention_forward` with inputs on tpu")


sys.modules["xformers"] = types.ModuleType("xformers")
sys.modules["xformers.ops"] = types.ModuleType("xformers.ops")
sys.modules["xformers"].ops = sys.modules["xformers.ops"]
sys.modules["xformers.ops"].memory_efficient_attention = memory_efficient_attention
""",
    ),
    Shown(
        "F12",
        ("TPU911", "TPU920"),
        """\
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[], key=["n"])
@triton.jit
def scale_kernel(x, n: tl.constexpr):
    i = tl.program_id(0)


def scale(x):
    if x.is_cuda:
        return scale_kernel[(1,)](x, x.numel())
    return x * 2


result = scale(torch.ones(2)).sum().item()
""",
        """\
import torch
if torch.cuda.is_available():
    import triton
    import triton.language as tl


    @triton.autotune(configs=[], key=["n"])
    @triton.jit
    def scale_kernel(x, n: tl.constexpr):
        i = tl.program_id(0)


def scale(x):
    if x.is_cuda:
        return scale_kernel[(1,)](x, x.numel())
    return x * 2


result = scale(torch.ones(2)).sum().item()
""",
        before="RuntimeError: 0 active drivers",
        after="4.0",
        unsafe=True,
        setup="""\
import sys, types


def autotune(**options):
    raise RuntimeError("0 active drivers ([]). There should only be one.")


triton = sys.modules["triton"] = types.ModuleType("triton")
triton.language = sys.modules["triton.language"] = types.ModuleType("triton.language")
triton.autotune, triton.jit, triton.language.constexpr = autotune, lambda f: f, int
""",
    ),
    Shown(
        "F17",
        ("TPU915",),
        """\
import torch
import torchvision

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
boxes = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]], device=device)
scores = torch.tensor([0.5, 0.6], device=device)
keep = torchvision.ops.nms(boxes, scores, 0.5)
result = (keep.tolist(), keep.device == boxes.device)
""",
        """\
import torch
import torchvision

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
boxes = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]], device=device)
scores = torch.tensor([0.5, 0.6], device=device)
keep = torchvision.ops.nms(boxes, scores, 0.5) if boxes.device.type in ("cpu", "cuda", "meta") else torchvision.ops.nms(boxes.cpu(), scores.cpu(), 0.5).to(boxes.device)
result = (keep.tolist(), keep.device == boxes.device)
""",
        before="is not implemented for TPU",
        after="([1], True)",
        setup="""\
import sys, types
import torch

if not hasattr(torch.ops.rows, "nms"):
    library = torch.library.Library("rows", "FRAGMENT")
    library.define("nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", lambda boxes, scores, iou_threshold: scores.argsort(descending=True)[:1], "CPU")
    keep_library = torch.rows_library = library
torchvision = sys.modules["torchvision"] = types.ModuleType("torchvision")
torchvision.ops = sys.modules["torchvision.ops"] = types.ModuleType("torchvision.ops")
torchvision.ops.nms = lambda boxes, scores, iou_threshold: torch.ops.rows.nms(boxes, scores, iou_threshold)
""",
    ),
    Shown(
        "G1",
        ("TPU602",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
x = torch.ones(2).pin_memory().to(device, non_blocking=True)
result = x.sum().item()
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
x = (torch.ones(2).pin_memory() if torch.cuda.is_available() else torch.ones(2)).to(device, non_blocking=True)
result = x.sum().item()
""",
        before="RuntimeError: host memory allocator is not implemented for this client",
        after="2.0",
    ),
    Shown(
        "H1",
        ("TPU922",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.cuda.manual_seed(0)
first = torch.rand(4, device=device)
torch.cuda.manual_seed(0)
result = torch.equal(first, torch.rand(4, device=device))
""",
        None,
        before="False",
        after="True",
        by_hand="""\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
first = torch.rand(4, device=device)
torch.manual_seed(0)
result = torch.equal(first, torch.rand(4, device=device))
""",
    ),
    Shown(
        "H6",
        ("TPU921",),
        """\
import torch

g = torch.Generator(device="cuda").manual_seed(0)
x = torch.randn(2, generator=g, device="cuda")
result = x.device.type
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

g = torch.Generator(device="cuda" if torch.cuda.is_available() else "cpu").manual_seed(0)
x = torch.randn(2, generator=g, device=g.device).to(DEVICE_TYPE)
result = x.device.type
""",
        before=("RuntimeError: Cannot get CUDA generator", "AcceleratorError: CUDA error"),
        after="tpu",
    ),
    Shown(
        "I1",
        ("TPU934", "TPU949"),
        """\
import torch
import torch_xla.core.xla_model as xm

batch = 64 // xm.xrt_world_size()
rank = xm.get_ordinal()
result = (batch, rank)
""",
        """\
import torch

batch = 64 // (torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1)
rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
result = (batch, rank)
""",
        before="ModuleNotFoundError: No module named 'torch_xla'",
        after="(64, 0)",
    ),
    Shown(
        "I7",
        ("TPU931", "TPU932", "TPU933", "TPU992"),
        """\
import torch
import torch_xla.core.xla_model as xm

device = xm.xla_device()
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2, device=device)).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    losses.append(loss)
    xm.mark_step()
result = (losses[2].item() < losses[0].item(), any(loss.requires_grad for loss in losses))
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.device(DEVICE_TYPE)
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
result = (losses[2].item() < losses[0].item(), any(loss.requires_grad for loss in losses))
""",
        before="ModuleNotFoundError: No module named 'torch_xla'",
        after="(True, False)",
        unsafe=True,
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
