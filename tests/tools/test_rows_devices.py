"""Choice of the device, torch.cuda calls, mixed precision, processes: programs that fail, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rows import Shown, check_runs, check_text

SHOWN = [
    Shown(
        "A2",
        ("TPU104",),
        """\
import torch


class Tower(torch.nn.Module):
    def load(self):
        self.scale = torch.ones(2).cuda()
        self.shift = torch.zeros(2).to("cuda")


tower = Tower()
tower.load()
result = (tower.scale.device.type, tower.shift.device.type)
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


class Tower(torch.nn.Module):
    def load(self):
        self.scale = torch.ones(2).to(DEVICE_TYPE)
        self.shift = torch.zeros(2).to(DEVICE_TYPE)


tower = Tower()
tower.load()
result = (tower.scale.device.type, tower.shift.device.type)
""",
        before=("AssertionError: Torch not compiled with CUDA enabled", "RuntimeError: Found no NVIDIA driver"),
        after="('tpu', 'tpu')",
    ),
    Shown(
        "A5",
        ("TPU117",),
        """\
import torch

device = torch.device("tpu")
result = torch.ones(2, device=device).device.type
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.device(DEVICE_TYPE)
result = torch.ones(2, device=device).device.type
""",
        before="RuntimeError: Expected one of cpu, cuda",
        after="cpu",
        on="cpu",
    ),
    Shown(
        "A9",
        ("TPU101",),
        """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
result = torch.ones(1, device=device).device.type
""",
        """\
import torch

device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
result = torch.ones(1, device=device).device.type
""",
        before="cpu",
        after="tpu",
    ),
    Shown(
        "A14",
        ("TPU111",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def place(tensor):
    return "hbm" if tensor.device.type in ("cuda", "mtia") else "ddr"


result = place(torch.ones(1, device=device))
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def place(tensor):
    return "hbm" if tensor.device.type not in ("cpu", "meta") else "ddr"


result = place(torch.ones(1, device=device))
""",
        before="ddr",
        after="hbm",
        unsafe=True,
    ),
    Shown(
        "B1",
        ("TPU208",),
        """\
import torch

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    x = torch.ones(2).cuda() * 2
torch.cuda.current_stream().wait_stream(stream)
result = x.sum().item()
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

stream = torch.cuda.Stream() if torch.cuda.is_available() else None
with torch.cuda.stream(stream):
    x = torch.ones(2).to(DEVICE_TYPE) * 2
if torch.cuda.is_available():
    torch.cuda.current_stream().wait_stream(stream)
result = x.sum().item()
""",
        before=("RuntimeError: torch.cuda.Stream requires CUDA support", "AcceleratorError: CUDA error"),
        after="4.0",
    ),
    Shown(
        "B7",
        ("TPU221",),
        """\
import torch


def clean():
    torch.accelerator.empty_cache()


clean()
result = "done"
""",
        """\
import torch


def clean():
    if torch.accelerator.is_available():
        torch.accelerator.empty_cache()


clean()
result = "done"
""",
        before="RuntimeError: Cannot access accelerator device when none is available",
        after="done",
        on="cpu",
        cpu_build=True,
    ),
    Shown(
        "B12",
        ("TPU216",),
        """\
import torch

x = torch.ones(2, device="tpu") + 1
torch.tpu.synchronize()
result = x.sum().item()
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

x = torch.ones(2, device=DEVICE_TYPE) + 1
if torch.accelerator.is_available():
    torch.accelerator.synchronize()
result = x.sum().item()
""",
        before="RuntimeError: synchronize is internal to TorchTPU",
        after="4.0",
    ),
    Shown(
        "C1",
        ("TPU303",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device.type)
start = model.weight.detach().clone()
scaler.scale(model(torch.ones(4, 2, device=device)).sum()).backward()
scaler.step(optimizer)
scaler.update()
result = round((start - model.weight).abs().sum().item(), 4)
""",
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device.type, enabled=device.type in ("cpu", "cuda"))
start = model.weight.detach().clone()
scaler.scale(model(torch.ones(4, 2, device=device)).sum()).backward()
scaler.step(optimizer)
scaler.update()
result = round((start - model.weight).abs().sum().item(), 4)
""",
        before="RuntimeError: operator 'aten::_amp_foreach_non_finite_check_and_unscale_' is not implemented for TPU",
        after="0.8",
    ),
    Shown(
        "C3",
        ("TPU302",),
        """\
import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
layer = torch.nn.Linear(2, 2).to(device)
with torch.autocast("cuda", dtype=torch.bfloat16):
    y = layer(torch.ones(1, 2, device=device))
result = y.dtype
""",
        """\
import torch

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
layer = torch.nn.Linear(2, 2).to(device)
with torch.autocast(DEVICE_TYPE, dtype=torch.bfloat16, enabled=DEVICE_TYPE != "cpu"):
    y = layer(torch.ones(1, 2, device=device))
result = y.dtype
""",
        before="torch.float32",
        after="torch.bfloat16",
    ),
    Shown(
        "C5",
        ("TPU304",),
        """\
import torch
from torch.amp import custom_fwd

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
seen = []


class Keep(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        seen.append(x.dtype)
        return x


with torch.autocast(device.type, dtype=torch.bfloat16):
    Keep.apply(torch.ones(2, device=device, dtype=torch.bfloat16))
result = seen[0]
""",
        """\
import torch
from torch.amp import custom_fwd

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
seen = []


class Keep(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type=DEVICE_TYPE if DEVICE_TYPE != "cpu" else "cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        seen.append(x.dtype)
        return x


with torch.autocast(device.type, dtype=torch.bfloat16):
    Keep.apply(torch.ones(2, device=device, dtype=torch.bfloat16))
result = seen[0]
""",
        before="torch.bfloat16",
        after="torch.float32",
    ),
    Shown(
        "D1",
        ("TPU402",),
        """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DDP(torch.nn.Linear(2, 2), device_ids=[0])
result = model(torch.ones(1, 2)).shape
""",
        """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DDP(torch.nn.Linear(2, 2), device_ids=[0] if torch.cuda.is_available() else None)
result = model(torch.ones(1, 2)).shape
""",
        before="ValueError: DistributedDataParallel device_ids and output_device arguments only work",
        after="torch.Size([1, 2])",
        on="cpu",
    ),
    Shown(
        "D3",
        ("TPU401",),
        """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
result = (dist.get_backend(), x.sum().item())
""",
        """\
import torch
import torch.distributed as dist

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

dist.init_process_group(dist.get_default_backend_for_device(DEVICE_TYPE), store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
result = (dist.get_backend(), x.sum().item())
""",
        before=("Distributed package doesn't have NCCL", "ProcessGroupNCCL is only supported with GPUs"),
        after="('gloo', 2.0)",
        on="cpu",
    ),
    Shown(
        "D8",
        ("TPU938", "TPU949"),
        """\
import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm

dist.init_process_group("gloo")
model = torch.nn.Linear(2, 2)
accuracy = 0.4 + dist.get_rank()
if accuracy > 0.5:
    xm.save(model.state_dict(), "best.pt")
dist.barrier()
print("done")
""",
        """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(2, 2)
accuracy = 0.4 + dist.get_rank()
if accuracy > 0.5:
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save(model.state_dict(), "best.pt")
dist.barrier()
print("done")
""",
    ),
    Shown(
        "D10",
        ("TPU412",),
        """\
import torch
import torch.multiprocessing as mp

context = mp.get_context("fork")
queue = context.SimpleQueue()
x = torch.ones(2, device="tpu")


def work():
    try:
        queue.put(str(torch.ones(2, device="tpu").sum().item()))
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")


worker = context.Process(target=work)
worker.start()
result = queue.get()
worker.join()
""",
        """\
import torch
import torch.multiprocessing as mp

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

context = mp.get_context("fork")
queue = context.SimpleQueue()
x = torch.ones(2, device=DEVICE_TYPE)


def work():
    try:
        queue.put(str(torch.ones(2, device="tpu").sum().item()))
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")


worker = context.Process(target=work)
worker.start()
result = queue.get()
worker.join()
""",
        before="cannot access or re-initialize TPU in a forked subprocess",
        after="4.0",
        by_hand="""\
import torch
import torch.multiprocessing as mp

context = mp.get_context("fork")
queue = context.SimpleQueue()
x = torch.ones(2, device="tpu")


def work():
    queue.put([1.0, 1.0])


worker = context.Process(target=work)
worker.start()
result = (x + torch.tensor(queue.get()).to("tpu")).sum().item()
worker.join()
""",
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
