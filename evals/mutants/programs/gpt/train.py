"""Trains the model for two short epochs, with automatic mixed precision."""

import math

import torch
from data import loader
from model import Model
from torch.nn import functional as F  # noqa: N812

device = torch.device("cuda")
TYPE = device.type

torch.manual_seed(3)
CONTEXT, BATCH, RATE, WARMUP, STEPS = 16, 32, 3e-3, 3, 40


def rate(step):
    """Linear warm-up, then half a cosine."""
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def loss_of(model, inputs, targets):
    """Cross entropy of the next token."""
    logits = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


@torch.no_grad()
def evaluate(model, batches):
    """Mean loss over two batches, without dropout."""
    model.eval()
    total = 0.0
    for number, (inputs, targets) in enumerate(batches):
        if number == 2:
            break
        total += loss_of(model, inputs.to(device), targets.to(device)).item() / 2
    model.train()
    return total


def main():
    """Trains and prints the loss."""
    batches = loader(CONTEXT, BATCH)
    model = Model(context=CONTEXT).to(device)
    optimizer = torch.optim.AdamW(model.groups(0.1), lr=RATE, betas=(0.9, 0.98))
    scaler = torch.amp.GradScaler(TYPE, enabled=TYPE == "cuda")
    step = 0
    for _ in range(2):
        for inputs, targets in batches:
            inputs, targets = inputs.to(device), targets.to(device)
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
            with torch.autocast(TYPE, dtype=torch.bfloat16):
                loss = loss_of(model, inputs, targets)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            step += 1
        print(f"step {step}  loss {loss.item():.4f}  evaluation {evaluate(model, batches):.4f}")


if __name__ == "__main__":
    main()
