'''Train a small ResNet with mixed precision.'''
import argparse
import os
import time

import torch
import torch.nn as nn
import torch.optim as optim
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader

from models import resnet8
from shapes import dataset

parser = argparse.ArgumentParser(description='small ResNet')
parser.add_argument('--lr', default=0.05, type=float)
parser.add_argument('--epochs', default=30, type=int)
parser.add_argument('--batch-size', default=128, type=int)
parser.add_argument('--seed', default=3, type=int)
args = parser.parse_args()

torch.manual_seed(args.seed)
torch.cuda.manual_seed_all(args.seed)
torch.backends.cudnn.benchmark = True

print('==> Preparing data..')
trainset, testset = dataset(128, seed=0), dataset(64, seed=1)
trainloader = DataLoader(trainset, batch_size=args.batch_size, shuffle=True, pin_memory=True, drop_last=True)
testloader = DataLoader(testset, batch_size=args.batch_size, pin_memory=True)

print('==> Building model..')
net = resnet8().cuda().to(memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1).cuda()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=args.lr, total_steps=args.epochs * len(trainloader), pct_start=0.3)
scaler = GradScaler()
best = float('inf')


def train(epoch):
    net.train()
    total, seen = 0.0, 0
    for images, targets in trainloader:
        images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        targets = targets.cuda(non_blocking=True)
        optimizer.zero_grad()
        with autocast():
            outputs = net(images)
            loss = criterion(outputs, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        total += loss.item() * targets.size(0)
        seen += targets.size(0)
        print(f'  step loss {loss.item():.4f}')
    peak = torch.cuda.max_memory_allocated() // 2 ** 20
    print(f'epoch {epoch} train loss {total / seen:.4f} | peak {peak} MB')


@torch.no_grad()
def test(epoch):
    global best
    net.eval()
    total, correct = 0.0, 0
    for images, targets in testloader:
        images, targets = images.cuda(), targets.cuda()
        with autocast():
            outputs = net(images.to(memory_format=torch.channels_last))
            total += criterion(outputs, targets).item() * len(targets)
        correct += outputs.argmax(1).eq(targets).sum().item()
    mean = total / len(testset)
    print(f'epoch {epoch} test loss {mean:.4f} | {correct} of {len(testset)} right')
    if mean < best:
        best = mean
        os.makedirs('checkpoint', exist_ok=True)
        torch.save({'net': net.state_dict(), 'loss': mean, 'epoch': epoch}, 'checkpoint/best.pth')


if __name__ == '__main__':
    for epoch in range(args.epochs):
        start = time.time()
        train(epoch)
        test(epoch)
        torch.cuda.synchronize()
        print(f'epoch {epoch} took {time.time() - start:.1f} s')
