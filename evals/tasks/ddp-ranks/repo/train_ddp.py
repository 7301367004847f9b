import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def ddp_setup():
    dist.init_process_group(backend="nccl", init_method="env://")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return local_rank, dist.get_rank(), dist.get_world_size()


def make_dataset(n=128):
    g = torch.Generator().manual_seed(123)
    x = torch.randn(n, 20, generator=g)
    w = torch.randn(20, 1, generator=g)
    return TensorDataset(x, torch.tanh(x @ w) + 0.05 * torch.randn(n, 1, generator=g))


class Trainer:
    def __init__(self, model, loader, optimizer, local_rank, args):
        self.device = torch.device(f"cuda:{local_rank}")
        self.model = DDP(model.to(self.device), device_ids=[local_rank], output_device=local_rank)
        self.loader, self.optimizer, self.args = loader, optimizer, args
        self.rank = dist.get_rank()

    def average(self, value):
        value = value.detach().clone()
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        return value.item() / dist.get_world_size()

    def batches(self):
        epoch = 0
        while True:
            self.loader.sampler.set_epoch(epoch)
            yield from self.loader
            epoch += 1

    def run(self):
        source = self.batches()
        for step in range(self.args.steps):
            x, y = next(source)
            x, y = x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            mean = self.average(loss)
            if self.rank == 0:
                print(f"[step {step}] loss {mean:.5f}", flush=True)
        dist.barrier()
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), self.args.checkpoint)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()

    local_rank, rank, world_size = ddp_setup()
    torch.manual_seed(0)
    data = make_dataset()
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=True, seed=9)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler, pin_memory=True)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    Trainer(model, loader, optimizer, local_rank, args).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
