# coding: utf-8
import argparse
import math

import torch
import torch.nn as nn

import data
import model as models

parser = argparse.ArgumentParser(description='LSTM language model')
parser.add_argument('--emsize', type=int, default=64)
parser.add_argument('--nhid', type=int, default=64)
parser.add_argument('--nlayers', type=int, default=1)
parser.add_argument('--lr', type=float, default=5)
parser.add_argument('--clip', type=float, default=0.25)
parser.add_argument('--epochs', type=int, default=6)
parser.add_argument('--batch_size', type=int, default=8)
parser.add_argument('--bptt', type=int, default=12)
parser.add_argument('--untied', action='store_true')
parser.add_argument('--seed', type=int, default=1111)
parser.add_argument('--cuda', action='store_true', help='use CUDA')
parser.add_argument('--log-interval', type=int, default=4)
parser.add_argument('--save', type=str, default='model.pt')
args = parser.parse_args()

torch.manual_seed(args.seed)
if torch.cuda.is_available() and not args.cuda:
    print("WARNING: You have a CUDA device, so you should probably run with --cuda")

corpus = data.Corpus()


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    data = data.view(bsz, -1).t().contiguous()
    if args.cuda:
        data = data.cuda()
    return data


train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, args.batch_size)

ntokens = len(corpus.dictionary)
model = models.RNNModel(ntokens, args.emsize, args.nhid, args.nlayers, tie_weights=not args.untied)
if args.cuda:
    model.cuda()
criterion = nn.CrossEntropyLoss()


def repackage_hidden(h):
    """Cut the hidden state off from its history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    return source[i:i + args.bptt], source[i + 1:i + 1 + args.bptt].view(-1)


def spans(source):
    return range(0, source.size(0) - 1 - args.bptt + 1, args.bptt)


def evaluate(source):
    model.eval()
    total_loss, n = 0., 0
    hidden = model.init_hidden(args.batch_size)
    with torch.no_grad():
        for i in spans(source):
            inputs, targets = get_batch(source, i)
            output, hidden = model(inputs, hidden)
            total_loss += criterion(output, targets).item()
            n += 1
    return total_loss / n


def train(epoch):
    model.train()
    total_loss = 0.
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(spans(train_data), 1):
        inputs, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(inputs, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.item()
        if batch % args.log_interval == 0:
            print('| epoch {:3d} | batch {:3d} | lr {:02.2f} | loss {:5.4f}'.format(
                epoch, batch, lr, total_loss / args.log_interval))
            total_loss = 0


lr = args.lr
best_val_loss = None
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for epoch in range(1, args.epochs + 1):
    train(epoch)
    val_loss = evaluate(val_data)
    print('| end of epoch {:3d} | valid loss {:5.4f} | valid ppl {:8.3f}'.format(
        epoch, val_loss, math.exp(val_loss)))
    if not best_val_loss or val_loss < best_val_loss:
        with open(args.save, 'wb') as f:
            torch.save(model, f)
        best_val_loss = val_loss
    else:
        lr /= 4.0
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)

with open(args.save, 'rb') as f:
    model = torch.load(f, weights_only=False)
print('| End of training | loss {:5.4f}'.format(evaluate(val_data)))
