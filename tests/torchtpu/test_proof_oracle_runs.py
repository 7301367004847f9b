"""Programs written for CUDA, unmodified, launched as runs of a comparison on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.torchtpu.launching import run
from torchtpu.launch import Outcome
from torchtpu.proof.spec import Proof

pytest.importorskip("torch")

PROGRAM = """
import random, sys
import torch
from torch import nn

assert torch.cuda.is_available()
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1)).to(device)
if "half" in sys.argv:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
scaler = torch.amp.GradScaler("cuda")
for step in range(3):
    x = torch.randn(8, 6, pin_memory=True).cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        made = model(x.to(next(model.parameters()).dtype))
        loss = (made.float() - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(made.dtype, random.random())
print(torch.compile(model) is not None, model[0].weight.device, loss.item())
"""


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Any, ...]]:
    """A function that gives a run's losses and its lines of output, once for the same settings."""

    @functools.cache
    def values(*arguments: str, source: str = PROGRAM, again: int = 0, **proof: Any) -> tuple[Any, ...]:
        options = {"oracle": True, "draws": True, "seed": 3, **proof}
        folder = tmp_path_factory.mktemp(f"run{again}")
        result = run(folder, source, argv=["python", "prog.py", *arguments], proof=Proof(**options))
        assert result.outcome is Outcome.COMPLETED, result.output_tail
        assert not result.notes
        assert len(result.losses) == 3
        return (*result.losses, *result.output_tail.splitlines()[-2:])

    return values


def test_the_same_seed_gives_the_same_run(losses: Callable[..., tuple[Any, ...]]) -> None:
    first = losses()
    assert first == losses(again=1)
    assert "torch.bfloat16" in first[3]
    assert "cuda:0" in first[4]
    assert losses(seed=4)[0] != first[0]


def test_float32_throughout(losses: Callable[..., tuple[Any, ...]]) -> None:
    own, full = losses(), losses(precision="float32")
    assert "torch.float32" in full[3]
    assert own[0] == pytest.approx(full[0], rel=0.02)
    assert own[0] != full[0]
    # Weights converted to half precision stay float32 too, and are the same numbers.
    assert losses("half", precision="float32") == full


def test_float16_becomes_bfloat16(losses: Callable[..., tuple[Any, ...]]) -> None:
    asked = PROGRAM.replace("dtype=torch.bfloat16)", "dtype=torch.float16)")
    assert losses(source=asked, precision="bfloat16") == losses()


def test_jitter_moves_the_loss_by_rounding_alone(losses: Callable[..., tuple[Any, ...]]) -> None:
    plain = losses(precision="float32")[:3]
    moved = losses(precision="float32", jitter=1)[:3]
    assert moved != plain
    assert moved == pytest.approx(plain, rel=3e-6)


def test_tpu_numerics_move_the_loss_by_bfloat16(losses: Callable[..., tuple[Any, ...]]) -> None:
    plain, rounded = losses(precision="float32"), losses(precision="float32", numerics_on_cpu=True)
    assert abs(rounded[0] - plain[0]) > 1e-5
    assert rounded[0] == pytest.approx(plain[0], rel=0.01)


RANKS = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
assert dist.get_backend() == "nccl"
assert torch.cuda.device_count() == 2
model = DistributedDataParallel(torch.nn.Linear(3, 1).cuda(), device_ids=[rank], output_device=rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.full((2, 3), float(rank), device=f"cuda:{rank}")
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
mean = torch.tensor([float(rank)], device="cuda")
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
assert mean.item() == 0.5
parts = [torch.zeros(1, device="cuda") for _ in range(2)]
dist.all_gather(parts, torch.tensor([rank + 1.0], device="cuda"))
assert [part.item() for part in parts] == [1, 2]
weights = model.module.weight.detach().clone()
dist.all_reduce(weights, op=dist.ReduceOp.SUM)
assert torch.allclose(weights, 2 * model.module.weight), "ranks differ"
dist.barrier()
if rank == 0:
    print("all", weights.device)
dist.destroy_process_group()
"""


def test_ranks_on_nccl(tmp_path: Path) -> None:
    argv = ["torchrun", "--standalone", "--nproc_per_node=2", "prog.py"]
    result = run(tmp_path, RANKS, argv=argv, proof=Proof(oracle=True, draws=True, seed=1))
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert "all cuda:0" in result.output_tail


def test_what_cannot_be_imitated_names_the_users_line(tmp_path: Path) -> None:
    events: list = []
    source = "import torch\nx = torch.ones(1).cuda()\ntorch.cuda.CUDAGraph()\n"
    result = run(tmp_path, source, proof=Proof(oracle=True), on_event=events.append)
    assert result.outcome is Outcome.EXCEPTION
    told = [event.data for event in events if event.event == "note" and event.data["kind"] == "oracle"]
    assert [(note["call"], note["file"], note["line"]) for note in told] == [("torch.cuda.CUDAGraph", "prog.py", 3)]


def test_numbers_that_seed_themselves_repeat(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    source = """
import random
import numpy as np
import torch
torch.seed()
print(torch.rand(1).item(), random.random(), np.random.rand(), np.random.default_rng().random(), {"a", "b", "c"})
"""
    first = run(tmp_path, source, proof=Proof(oracle=True, seed=5)).output_tail
    assert first == run(tmp_path, source, proof=Proof(oracle=True, seed=5)).output_tail
    assert first != run(tmp_path, source, proof=Proof(oracle=True, seed=6)).output_tail
