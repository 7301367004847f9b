"""Trains the click model; no options, edit CONFIG."""
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from clicks import ClickLog, collate
from towers import TwoTowers


@dataclass
class Config:
    items: int = 60
    dim: int = 8
    batch: int = 32
    epochs: int = 1
    lr: float = 1e-2


CONFIG = Config()


def optimizers(model):
    """Tables get sparse gradients and their own optimizer."""
    tables = [m.weight for m in model.modules() if isinstance(m, torch.nn.EmbeddingBag)]
    known = {id(t) for t in tables}
    dense = [p for p in model.parameters() if id(p) not in known]
    return [torch.optim.SparseAdam(tables, lr=CONFIG.lr), torch.optim.Adam(dense, lr=CONFIG.lr)]


def main():
    torch.manual_seed(17)
    torch.cuda.manual_seed(17)
    log = ClickLog(users=320, items=CONFIG.items)
    loader = DataLoader(log, batch_size=CONFIG.batch, shuffle=False, collate_fn=collate)
    model = TwoTowers(CONFIG.items, CONFIG.dim).cuda()
    opts = optimizers(model)
    loss_fn = torch.nn.BCEWithLogitsLoss()
    for epoch in range(CONFIG.epochs):
        for n, (ids, offsets, item, liked) in enumerate(loader):
            loss = loss_fn(model(ids, offsets, item), liked)
            for o in opts:
                o.zero_grad()
            loss.backward()
            for o in opts:
                o.step()
            print(f"epoch {epoch} batch {n}: loss {float(loss):.5f}")
    torch.save({k: v.cpu() for k, v in model.state_dict().items()}, "towers.pt")


if __name__ == "__main__":
    main()
