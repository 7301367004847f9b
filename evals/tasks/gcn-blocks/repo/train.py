import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch.optim as optim

from gcn.models import GCN
from gcn.utils import load_data

parser = argparse.ArgumentParser()
parser.add_argument('--seed', type=int, default=42)
parser.add_argument('--epochs', type=int, default=200)
parser.add_argument('--lr', type=float, default=0.01)
parser.add_argument('--weight_decay', type=float, default=5e-4)
parser.add_argument('--hidden', type=int, default=16)
args = parser.parse_args()

np.random.seed(args.seed)
torch.manual_seed(args.seed)
torch.cuda.manual_seed(args.seed)

adj, features, labels, train_mask = load_data()
model = GCN(nfeat=features.shape[1], nhid=args.hidden, nclass=int(labels.max()) + 1)
optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)

model.cuda()
features = features.cuda()
adj = adj.cuda()
labels = labels.cuda()
train_mask = train_mask.cuda()


def train(epoch):
    t = time.time()
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[train_mask], labels[train_mask])
    loss_train.backward()
    optimizer.step()
    print('Epoch: {:04d}'.format(epoch + 1), 'loss: {:.4f}'.format(loss_train.item()),
          'time: {:.4f}s'.format(time.time() - t))


def test():
    model.eval()
    with torch.no_grad():
        output = model(features, adj)
    loss = F.nll_loss(output[~train_mask], labels[~train_mask])
    correct = output.argmax(1)[~train_mask].eq(labels[~train_mask]).sum().item()
    print('Test set results: loss= {:.4f}'.format(loss.item()), 'correct:', correct)


for epoch in range(args.epochs):
    train(epoch)
torch.cuda.synchronize()
test()
