import torch
from torch import nn

from forecast.data import Windows
from forecast.model import Forecaster


class Experiment:
    def __init__(self, settings):
        self.settings = settings
        runtime = settings.runtime
        self.device = torch.device(runtime.device)
        torch.manual_seed(runtime.seed)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.backends.cuda.matmul.allow_tf32 = True
        d = settings.data
        self.windows = Windows(d["series"], d["length"], d["context"], d["horizon"])
        self.model = Forecaster(d["context"], d["horizon"], **settings.model).to(self.device)
        if runtime.data_parallel:
            self.model = nn.DataParallel(self.model)
        options = dict(settings.optimizer)
        self.optimizer = getattr(torch.optim, options.pop("name"))(self.model.parameters(), **options)

    def loader(self):
        order = torch.Generator().manual_seed(self.settings.runtime.seed)
        return torch.utils.data.DataLoader(
            self.windows, batch_size=self.settings.training["batch"], shuffle=True, drop_last=True, generator=order,
            pin_memory=self.device.type == "cuda",
        )

    def run(self, tell=print):
        losses = []
        for step, (context, horizon) in enumerate(self.loader()):
            if step == self.settings.training["steps"]:
                break
            context = context.to(self.device, non_blocking=True)
            horizon = horizon.to(self.device, non_blocking=True)
            loss = nn.functional.l1_loss(self.model(context), horizon)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            tell(f"step {step} loss {losses[-1]:.5f}")
        tell(f"mean of the last five: loss {sum(losses[-5:]) / 5:.5f}")
        return losses

    def save(self, path):
        model = self.model.module if isinstance(self.model, nn.DataParallel) else self.model
        torch.save(model.state_dict(), path)
