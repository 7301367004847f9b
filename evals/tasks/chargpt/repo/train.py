"""Trains the model.

    python train.py                                        one GPU
    torchrun --standalone --nproc_per_node=8 train.py      eight GPUs
"""

import math
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel

from chargpt import data, settings, speed
from chargpt.model import CharGPT

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True


def set_up_ranks():
    """Return rank, local rank and world size; one process when not started by torchrun."""
    if "RANK" not in os.environ:
        torch.cuda.set_device(0)
        return 0, 0, 1
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    return dist.get_rank(), local_rank, dist.get_world_size()


def learning_rate(options, i):
    """Linear warm-up, then half a cosine."""
    if i < options.warmup_iters:
        return options.learning_rate * (i + 1) / options.warmup_iters
    progress = min(1.0, (i - options.warmup_iters) / max(1, options.max_iters - options.warmup_iters))
    swing = options.learning_rate - options.min_learning_rate
    return options.min_learning_rate + swing * 0.5 * (1 + math.cos(math.pi * progress))


@torch.no_grad()
def evaluate(model, batches, options, dtype):
    model.eval()
    total = torch.zeros((), device="cuda")
    for _ in range(options.eval_batches):
        inputs, targets = next(batches)
        with autocast(dtype=dtype):
            _, loss = model(inputs, targets)
        total += loss
    model.train()
    return (total / options.eval_batches).item()


def save(path, model, optimizer, scaler, i, options, alphabet):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": scaler.state_dict(),
            "iteration": i,
            "options": vars(options),
            "symbols": alphabet.symbols,
        },
        path,
    )


def main():
    options = settings.load()
    rank, local_rank, world_size = set_up_ranks()
    torch.manual_seed(options.seed + rank)
    torch.cuda.manual_seed_all(options.seed + rank)
    if rank == 0:
        print(f"{world_size} x {torch.cuda.get_device_name(local_rank)}")

    alphabet, training, validation = data.read(options.corpus, options.context)
    load = lambda windows: data.forever(  # noqa: E731
        data.loader(windows, options.batch_size, options.num_workers, rank, world_size, options.seed)
    )
    training_batches, validation_batches = load(training), load(validation)

    model = CharGPT(
        len(alphabet), options.width, options.num_layers, options.num_heads, options.context, options.dropout
    ).cuda()
    if rank == 0:
        print(f"{model.num_parameters() / 1e6:.2f}M parameters, {len(alphabet)} symbols")
    optimizer = torch.optim.AdamW(
        model.decay_groups(options.weight_decay),
        lr=options.learning_rate,
        betas=(options.beta1, options.beta2),
        fused=True,
    )
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[options.precision]
    scaler = GradScaler(enabled=options.precision == "fp16")
    checkpoint = Path(options.out_dir) / "chargpt.pt"
    first = 0
    if options.resume and checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scaler.load_state_dict(state["scaler"])
        first = state["iteration"] + 1

    network = torch.compile(model, mode="reduce-overhead") if options.compile else model
    if world_size > 1:
        network = DistributedDataParallel(network, device_ids=[local_rank], output_device=local_rank)

    flops = speed.flops_per_step(
        model.num_parameters(), options.num_layers, options.width, options.context, options.batch_size * options.context
    )
    timer = speed.StepTimer()
    torch.cuda.reset_peak_memory_stats()
    for i in range(first, options.max_iters):
        timer.start()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(options, i)
        inputs, targets = next(training_batches)
        with autocast(dtype=dtype):
            _, loss = network(inputs, targets)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        scaler.step(optimizer)
        scaler.update()
        timer.stop()

        if rank == 0 and i % options.log_every == 0:
            seconds = timer.seconds()
            print(
                f"iteration {i:5d}  loss {loss.item():.4f}  {seconds * 1000:.1f} ms  "
                f"MFU {100 * speed.utilisation(flops, seconds):.2f} %"
            )
        if (i + 1) % options.eval_every == 0 or i + 1 == options.max_iters:
            valid = evaluate(network, validation_batches, options, dtype)
            if rank == 0:
                print(f"iteration {i:5d}  validation loss {valid:.4f}")
                save(checkpoint, model, optimizer, scaler, i, options, alphabet)

    torch.cuda.synchronize()
    if rank == 0:
        print(f"peak GPU memory {speed.peak_memory_mib():.0f} MiB")
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
