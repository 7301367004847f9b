"""Trains the network with momentum, a step schedule and two micro-batches a step."""

import random

import images
import numpy as np
import torch
from network import Network
from torch import nn

device = torch.device("cuda")

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)
BATCH, MICRO, EPOCHS = 32, 2, 3


def accuracy(network, data, classes):
    """Share of images whose class is found."""
    network.eval()
    with torch.no_grad():
        found = network(data.to(device)).argmax(1)
    network.train()
    return (found.cpu() == classes).float().mean().item()


def main():
    """Trains and prints loss and accuracy."""
    data, classes = images.make(320, seed=1)
    held, held_classes = images.make(64, seed=2)
    network = Network().to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    micro = 0
    for epoch in range(EPOCHS):
        for inputs, targets in images.batches(data, classes, BATCH):
            inputs, targets = inputs.to(device), targets.to(device)
            loss = criterion(network(inputs), targets) / MICRO
            loss.backward()
            micro += 1
            if micro % MICRO == 0:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}  accuracy {accuracy(network, held, held_classes):.3f}")


if __name__ == "__main__":
    main()
