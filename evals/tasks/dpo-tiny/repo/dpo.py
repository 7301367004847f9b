"""Direct preference optimisation on pairs of toy sequences."""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCAB, LENGTH = 0, 12, 8
torch.backends.cuda.matmul.allow_tf32 = True


class LM(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = nn.Embedding(LENGTH, d)
        self.att = nn.MultiheadAttention(d, 2, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.out = nn.Linear(d, VOCAB)

    def forward(self, ids):
        t = ids.shape[1]
        x = self.emb(ids) + self.pos.weight[:t]
        future = torch.ones(t, t, dtype=torch.bool, device=ids.device).triu(1)
        a, _ = self.att(x, x, x, attn_mask=future, need_weights=False)
        return self.out(x + self.ff(x + a))


def pairs(n, generator):
    rows = []
    for kind in (1, -1):
        start = torch.randint(1, VOCAB, (n, 1), generator=generator)
        ids = (start - 1 + kind * torch.arange(LENGTH)) % (VOCAB - 1) + 1
        length = torch.randint(4, LENGTH + 1, (n, 1), generator=generator)
        rows.append(ids.masked_fill(torch.arange(LENGTH) >= length, PAD))
    return rows


def log_prob(model, ids):
    logits = model(ids[:, :-1]).float()
    target = ids[:, 1:]
    picked = torch.gather(logits.log_softmax(-1), 2, target.unsqueeze(2)).squeeze(2)
    return (picked * (target != PAD)).sum(1)


def dpo_loss(policy, ref, chosen, rejected, beta):
    with torch.no_grad():
        ref_gap = log_prob(ref, chosen) - log_prob(ref, rejected)
    gap = log_prob(policy, chosen) - log_prob(policy, rejected)
    return -F.logsigmoid(beta * (gap - ref_gap)).mean()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--beta", type=float, default=0.5)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    if a.device.startswith("cuda"):
        torch.cuda.init()
        print("bf16 capable:", torch.cuda.is_bf16_supported())

    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(32)
    policy = LM().to(a.device)
    reference = copy.deepcopy(policy).eval()
    for w in reference.parameters():
        w.requires_grad = False
    opt = torch.optim.AdamW(policy.parameters(), lr=a.lr, weight_decay=0.0)
    for step in range(a.steps):
        chosen, rejected = (r.to(a.device) for r in pairs(16, gen))
        loss = dpo_loss(policy, reference, chosen, rejected, a.beta)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("step", step, "loss", f"{loss.item():.5f}")
    torch.save(policy.state_dict(), "policy.pt")
