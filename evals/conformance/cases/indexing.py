"""Indexing, masks, scatter and gather, sorting, counting."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

from typing import Any

import torch

from evals.conformance.bench import Bench


def data_dependent_shapes(bench: Bench) -> Any:
    data = bench.on((torch.arange(12) % 3).reshape(3, 4))
    picked = data[data > 0], torch.masked_select(data, data > 1)
    return picked, torch.nonzero(data), torch.where(data == 1), torch.argwhere(data)


def masked_assignment(bench: Bench) -> Any:
    data = bench.normal(4, 4)
    data[data > 0] = 0.0
    data[:, 1] = 5
    data[bench.on([0, 2])] = bench.normal(2, 4)
    return data


def gradient_through_mask(bench: Bench) -> Any:
    data = bench.normal(4, 4).requires_grad_()
    (data[data > 0] ** 2).sum().backward()
    return data.grad


def scatter_and_gather(bench: Bench) -> Any:
    data, where = bench.normal(4, 6), bench.on([[0, 1], [2, 0], [5, 5], [3, 1]])
    rows, same, flat = bench.on([2, 0]), bench.on([1, 1]), bench.on([3, 1])
    one = bench.on([1])

    def run(data: torch.Tensor) -> Any:
        empty, left = torch.zeros_like(data), data[:, :2]
        return [
            data.gather(1, where),
            empty.scatter(1, where, left),
            empty.scatter_add(1, where, torch.ones_like(left)),
            empty.scatter_reduce(1, where, left, "amax", include_self=False),
            data.index_select(0, rows),
            empty.index_add(0, same, data[:2]),
            data.take(flat),
            torch.take_along_dim(data, where, 1),
            data.index_copy(0, one, data[:1]),
        ]

    return bench.compiled(run)(data)


def index_put(bench: Bench) -> Any:
    data = torch.zeros(4, 6, device=bench.device)
    rows, columns = bench.on([0, 1, 1]), bench.on([2, 3, 3])
    data.index_put_((rows, columns), bench.on([1.0, 2.0, 3.0]), accumulate=True)
    data[rows] += 1
    data[:, columns] = 7
    data[..., -1] = 2
    crossed = data.clone()
    crossed[bench.on([[0], [3]]), columns] = 4
    return data, crossed, data[rows, columns], data[:, None, columns], data[2:, rows]


def sorting_and_scans(bench: Bench) -> Any:
    data, edges = bench.normal(5, 18), bench.on([-1.0, 0.0, 1.0])

    def run(data: torch.Tensor) -> Any:
        ordered = data.sort(-1)
        return [
            ordered,
            data.sort(0, descending=True)[0],
            data.argsort(-1),
            data.topk(3, -1),
            data.kthvalue(3, -1)[0],
            data.median(-1)[0],
            data.median(),
            data.max(-1),
            data.argmax(),
            data.cummax(-1)[0],
            data.cumsum(-1),
            data.cumprod(0),
            data.logcumsumexp(-1),
            torch.searchsorted(ordered[0], data[:, :2].contiguous()),
            torch.bucketize(data, edges),
            data.quantile(0.3),
            torch.histc(data, 5, -2, 2),
        ]

    return bench.compiled(run)(data)


def unique_and_counts(bench: Bench) -> Any:
    data = bench.on([3, 1, 3, 2, 1])
    return [
        torch.unique(data),
        torch.unique(data, return_inverse=True, return_counts=True),
        torch.unique_consecutive(data),
        torch.bincount(data),
        torch.isin(data, bench.on([1, 2])),
    ]
