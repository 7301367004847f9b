"""What the rules for torch.cuda calls write runs without CUDA, on the CPU and on TorchTPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.engine import fix
from tools.project import TextProject
from tools.rules import selected

ROOT = Path(__file__).parents[2]

_PROGRAM = """
import os
import time

import torch

device = "cuda"
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float16"
device_type = "cuda" if "cuda" in device else "cpu"
torch.manual_seed(1)
torch.cuda.manual_seed(1)
torch.cuda.set_device(0)
torch.cuda.reset_peak_memory_stats()
torch.cuda.ipc_collect()
torch.cuda.empty_cache()
torch.cuda.nvtx.range_push("step")
model = torch.nn.Linear(4, 4).cuda()
copy = torch.cuda.Stream()
copy.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(copy):
    x = torch.ones(2, 4).cuda()
torch.cuda.current_stream().wait_stream(copy)
rng = torch.Generator(device="cuda")
rng.manual_seed(3)
noise = torch.randn(2, 4, generator=rng, device=device)
probs = torch.softmax(model(x + noise), dim=-1)
pick = torch.multinomial(probs, 1, generator=rng)
with torch.cuda.device(0), torch.cuda.nvtx.range("forward"):
    loss = model(x).sum()
loss.backward()
if device_type == "cuda":
    torch.cuda.synchronize()
torch.cuda.synchronize()
torch.cuda.nvtx.range_pop()
workers = 8 // torch.cuda.device_count()
peak = torch.cuda.max_memory_allocated() / 2**20
name = torch.cuda.get_device_name()
fast = torch.cuda.get_device_capability()[0] >= 8
state = torch.cuda.get_rng_state()
torch.cuda.set_rng_state(state)
legacy = torch.cuda.FloatTensor([1.0, 2.0])
back = legacy.type("torch.cuda.LongTensor")
if x.is_cuda:
    back = back.cuda()
print(dtype, device_type, x.device.type, pick.device.type, legacy.device.type, back.dtype, workers, fast, peak >= 0)
"""

_TIMED = """
import torch

start = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
start.record()
x = torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
end.record()
torch.cuda.synchronize()
index = torch.cuda.current_device()
free, total = torch.cuda.mem_get_info()
print(index, start.elapsed_time(end) >= 0)
"""


def migrated(text: str) -> str:
    data = text.encode()
    for _ in range(4):
        before = data
        for rule in selected(select=("TPU1", "TPU2", "TPU92")):
            data = fix("train.py", data, TextProject(Path(), texts={"train.py": data}), [rule]).data
        if data == before:
            return data.decode()
    raise AssertionError("the rules do not come to rest")


def run(text: str, prefix: str = "") -> str:
    environment = {
        **os.environ,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "TPU_SKIP_MDS_QUERY": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", prefix + text], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_runs_on_a_machine_without_accelerator() -> None:
    pytest.importorskip("torch")
    text = migrated(_PROGRAM)
    assert "torch.tpu" not in text
    assert run(text) == "float16 cpu cpu cpu cpu torch.int64 8 False True"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "printed"),
    [(_PROGRAM, "bfloat16 tpu tpu tpu tpu torch.int64 8 False True"), (_TIMED, "0 True")],
    ids=["calls", "events"],
)
def test_runs_on_torchtpu(program: str, printed: str) -> None:
    device = pytest.importorskip("torchtpu.device")
    try:
        device.choose("simulated")
    except device.DeviceError as missing:
        pytest.skip(str(missing))
    start = "from torchtpu.device import bring_up, choose\nbring_up(choose('simulated'))\n"
    assert run(migrated(program), start) == printed
