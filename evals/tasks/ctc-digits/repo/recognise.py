#!/usr/bin/env python
import argparse

import numpy as np
import torch
from torch import nn

from audio import NUM_DIGITS, FilterBank, utterance

BLANK = NUM_DIGITS


class Recogniser(nn.Module):
    def __init__(self, bands=16, hidden=24):
        super().__init__()
        self.norm = nn.LayerNorm(bands)
        self.rnn = nn.GRU(bands, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, NUM_DIGITS + 1)

    def forward(self, features):
        h, _ = self.rnn(self.norm(features))
        return self.out(h).log_softmax(-1)


def batch(rng, size, n=3):
    waves, digits = zip(*(utterance(rng, n) for _ in range(size)))
    waves = torch.from_numpy(np.stack(waves)).cuda()
    targets = torch.from_numpy(np.stack(digits)).cuda()
    lengths = torch.full((size,), n, dtype=torch.long).cuda()
    return waves, targets, lengths


def greedy(log_probs):
    best = log_probs.argmax(-1).cpu().tolist()
    texts = []
    for row in best:
        merged = [s for i, s in enumerate(row) if i == 0 or s != row[i - 1]]
        texts.append("".join(str(s) for s in merged if s != BLANK))
    return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    bank = FilterBank()
    model = Recogniser().cuda()
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for step in range(args.steps):
        waves, targets, lengths = batch(rng, args.batch)
        log_probs = model(bank(waves))
        frames = torch.full((args.batch,), log_probs.shape[1], dtype=torch.long, device="cuda")
        loss = ctc(log_probs.transpose(0, 1), targets, frames, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
    torch.cuda.empty_cache()

    model.eval()
    with torch.no_grad():
        waves, targets, lengths = batch(rng, args.batch)
        log_probs = model(bank(waves))
        frames = torch.full((args.batch,), log_probs.shape[1], dtype=torch.long, device="cuda")
        print(f"held out: loss {ctc(log_probs.transpose(0, 1), targets, frames, lengths).item():.4f}")
        print("heard", greedy(log_probs[:2]))


if __name__ == "__main__":
    main()
