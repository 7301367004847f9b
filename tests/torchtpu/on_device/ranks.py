"""One rank of a distributed job on the device; writes what it found as JSON to the folder given.

Every comparison is with the same computation in one process on the CPU.
"""

import copy
import json
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from torchtpu import device

warnings.filterwarnings("ignore")
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


def normal(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


INPUTS, TARGETS = normal(8, 8, seed=1), normal(8, 4, seed=2)


def train(model, inputs, targets, steps=3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def share(data):
    return data.chunk(dist.get_world_size())[dist.get_rank()].to("tpu")


def distance(model, reference):
    pairs = zip(model.parameters(), reference.parameters(), strict=True)
    whole = ((full(p), q) for p, q in pairs)
    return max((one - other.detach()).abs().max().item() for one, other in whole)


def full(parameter):
    data = parameter.detach()
    return (data.full_tensor() if hasattr(data, "full_tensor") else data).cpu()


def number(value):
    return torch.tensor([float(value)], device="tpu")


@check
def collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    total = sum(range(1, size + 1))
    errors = []

    def expect(tensor, *values):
        errors.append((tensor.cpu().flatten() - torch.tensor(values)).abs().max().item())

    mine = number(rank + 1)
    for operation, value in (
        (dist.ReduceOp.SUM, total),
        (dist.ReduceOp.AVG, total / size),
        (dist.ReduceOp.MAX, size),
        (dist.ReduceOp.MIN, 1),
    ):
        result = mine.clone()
        dist.all_reduce(result, op=operation)
        expect(result, value)
    handle_target = mine.clone()
    dist.all_reduce(handle_target, async_op=True).wait()
    expect(handle_target, total)
    result = mine.clone()
    dist.broadcast(result, src=size - 1)
    expect(result, size)
    result = mine.clone()
    dist.reduce(result, dst=0)
    expect(result, total if rank == 0 else rank + 1)
    parts = [number(0) for _ in range(size)]
    dist.all_gather(parts, mine)
    expect(torch.cat(parts), *range(1, size + 1))
    uneven = [torch.zeros(r + 1, device="tpu") for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), rank + 1.0, device="tpu"))
    expect(torch.cat(uneven), *(r + 1 for r in range(size) for _ in range(r + 1)))
    whole = torch.zeros(size, device="tpu")
    dist.all_gather_into_tensor(whole, mine)
    expect(whole, *range(1, size + 1))
    piece = number(0)
    dist.reduce_scatter_tensor(piece, torch.arange(float(size), device="tpu"))
    expect(piece, rank * size)
    dist.reduce_scatter(piece, [number(r + rank) for r in range(size)])
    expect(piece, rank * size + sum(range(size)))
    dist.scatter(piece, [number(10 + r) for r in range(size)] if rank == 0 else None, src=0)
    expect(piece, 10 + rank)
    parts = [number(0) for _ in range(size)] if rank == 0 else None
    dist.gather(mine, parts, dst=0)
    if parts is not None:
        expect(torch.cat(parts), *range(1, size + 1))
    exchanged = torch.zeros(size, device="tpu")
    dist.all_to_all_single(exchanged, torch.arange(float(size), device="tpu") + 10 * rank)
    expect(exchanged, *(10 * r + rank for r in range(size)))
    parts = [number(0) for _ in range(size)]
    dist.all_to_all(parts, [number(10 * rank + r) for r in range(size)])
    expect(torch.cat(parts), *(10 * r + rank for r in range(size)))
    if rank == 0:
        dist.send(number(42), dst=1)
    elif rank == 1:
        dist.recv(piece, src=0)
        expect(piece, 42)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    errors.append(float(objects != [{"rank": r} for r in range(size)]))
    group = dist.new_group(list(range(size)))
    dist.all_reduce(mine, group=group)
    expect(mine, total)
    dist.barrier()
    return max(errors)


@check
def functional_collectives():
    size = dist.get_world_size()
    total = functional.all_reduce(number(dist.get_rank() + 1), "sum", dist.group.WORLD)
    return abs(total.item() - sum(range(1, size + 1)))


@check
def collective_inside_compile():
    def step(data):
        reduced = functional.all_reduce(data * 2, "sum", dist.group.WORLD)
        return reduced + 1

    actual = torch.compile(step)(number(dist.get_rank() + 1)).item()
    return abs(actual - (2 * sum(range(1, dist.get_world_size() + 1)) + 1))


@check
def data_parallel():
    reference = train(network(), INPUTS, TARGETS)
    model = DistributedDataParallel(network().to("tpu"))
    return distance(train(model, share(INPUTS), share(TARGETS)), reference)


@check
def data_parallel_compiled():
    reference = train(network(), INPUTS, TARGETS)
    model = DistributedDataParallel(network().to("tpu"))
    train(torch.compile(model), share(INPUTS), share(TARGETS))
    return distance(model, reference)


@check
def fully_sharded():
    reference = train(network(), INPUTS, TARGETS)
    mesh = init_device_mesh("tpu", (dist.get_world_size(),))
    model = network().to("tpu")
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    return distance(train(model, share(INPUTS), share(TARGETS)), reference)


@check
def tensor_parallel():
    reference = train(copy.deepcopy(network()), INPUTS, TARGETS)
    mesh = init_device_mesh("tpu", (dist.get_world_size(),))
    model = network().to("tpu")
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return distance(train(model, INPUTS.to("tpu"), TARGETS.to("tpu")), reference)


@check
def distributed_tensors():
    mesh = init_device_mesh("tpu", (dist.get_world_size(),))
    sharded = distribute_tensor(INPUTS.to("tpu"), mesh, [Shard(0)])
    identity = distribute_tensor(torch.eye(8).to("tpu"), mesh, [Replicate()])
    product = sharded @ identity
    column_sharded = product.redistribute(mesh, [Shard(1)])
    errors = [
        (product.full_tensor().cpu() - INPUTS).abs().max().item(),
        (column_sharded.full_tensor().cpu() - INPUTS).abs().max().item(),
        abs(product.sum().full_tensor().item() - INPUTS.sum().item()) / 10,
    ]
    return max(errors)


def main(folder):
    device.bring_up()
    torch.set_num_threads(1)
    dist.init_process_group("tpu_dist")
    found = {"world": dist.get_world_size()}
    for function in CHECKS:
        try:
            found[function.__name__] = function()
        except Exception:  # noqa: BLE001  reported to the parent, which fails the test
            found[function.__name__] = traceback.format_exc()[-3000:]
    Path(folder, f"rank{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
