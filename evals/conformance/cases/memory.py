"""Views, in-place writes, copies between layouts, and moving data to and from the host."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

import copy
import io
import pickle
from typing import Any

import torch
from torch import nn

from evals.conformance.bench import Bench


def writes_through_views(bench: Bench) -> Any:
    data = torch.zeros(4, 6, device=bench.device)
    strided = data[1:3, ::2]
    strided.add_(1)
    data.t()[2].mul_(3)
    data.view(2, 12)[0, 3:5] = 7
    turned = data.permute(1, 0)
    turned[0].fill_(9)
    data.narrow(0, 2, 2).copy_(torch.full((2, 6), 4.0, device=bench.device))
    data.unsqueeze(0)[0, 0, 0] -= 1
    data.diagonal().add_(10)
    return data, turned, strided


def chained_in_place(bench: Bench) -> Any:
    data = bench.normal(4, 4)
    data.relu_().clamp_(0, 1).zero_().add_(2).mul_(3).sub_(1).div_(2).neg_().abs_().sqrt_().exp_()
    data.masked_fill_(data > 1, 0).fill_diagonal_(3).index_fill_(0, bench.on([1]), 5)
    return data.addcmul_(data, data).lerp_(torch.ones_like(data), 0.5)


def as_strided(bench: Bench) -> Any:
    data = bench.on(torch.arange(20.0))
    window = torch.as_strided(data, (3, 4), (4, 1), 2)
    window.add_(100)
    return data, window, data.unfold(0, 5, 3), data.data_ptr() != 0


def in_place_under_autograd(bench: Bench) -> Any:
    data = bench.normal(4, 4).requires_grad_()
    doubled = data * 2
    doubled[:, 0] = 0
    doubled.mul_(data)
    doubled[1].add_(1)
    doubled.sum().backward()
    return data.grad, doubled


def copies(bench: Bench) -> Any:
    data = bench.normal(3, 4)
    turned = torch.empty(4, 3, device=bench.device).t()
    turned.copy_(data)
    host = torch.empty(3, 4)
    host.copy_(turned)
    clone = data.clone(memory_format=torch.preserve_format)
    return host, data.to(torch.bfloat16), clone, torch.empty_like(data).shape[0], data.new_zeros(2)


def resize_and_set(bench: Bench) -> Any:
    data = torch.zeros(2, device=bench.device)
    data.resize_(6).zero_()
    other = torch.zeros(1, device=bench.device)
    other.set_(data)
    other.data = data + 1
    return other


def save_and_load(bench: Bench) -> Any:
    model, buffer = bench.module(lambda: nn.Linear(4, 4)), io.BytesIO()
    torch.save({"model": model.state_dict(), "x": torch.arange(4, device=bench.device)}, buffer)
    buffer.seek(0)
    same_device = torch.load(buffer)["model"]["weight"].device.type == bench.device
    buffer.seek(0)
    return [same_device, torch.load(buffer, map_location="cpu")["x"]]


def deepcopy_and_pickle(bench: Bench) -> Any:
    data = pickle.loads(pickle.dumps(torch.arange(4.0, device=bench.device)))
    model = copy.deepcopy(bench.module(lambda: nn.Linear(4, 4)))
    return [data, data.device.type == bench.device, list(model.parameters())]


def scalars_to_python(bench: Bench) -> Any:
    data = torch.tensor(3.5, device=bench.device)
    counts = torch.arange(3, device=bench.device)
    return [data.item(), bool(data > 1), float(data), int(data), data.tolist(), counts.tolist()]


def numpy_round_trip(bench: Bench) -> Any:
    data = bench.on(torch.from_numpy(bench.normal(3).cpu().numpy()))
    return data.cpu().numpy().sum().item()


def printing(bench: Bench) -> Any:
    return [len(repr(bench.on(torch.arange(5.0)))) > 0, f"{bench.on(1.0):.2f}" == "1.00"]


def pinned_memory(bench: Bench) -> Any:
    data = bench.normal(4).cpu()
    return bench.on(data if bench.is_reference else data.pin_memory())


def mixed_devices_are_refused(bench: Bench) -> Any:
    if bench.is_reference:
        return [True]
    try:
        torch.ones(2, device=bench.device) + torch.ones(2)
    except RuntimeError:
        return [True]
    return [False]
