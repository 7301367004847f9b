"""Factorisations and solvers of torch.linalg."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

from typing import Any

import torch

from evals.conformance.bench import Bench


def solvers(bench: Bench) -> Any:
    data = bench.normal(5, 5)
    definite = data @ data.t() + 5 * torch.eye(5, device=bench.device)
    linalg = torch.linalg
    lower = linalg.cholesky(definite)
    return [
        lower,
        linalg.inv(definite),
        linalg.solve(definite, data),
        linalg.det(definite),
        linalg.slogdet(definite)[1],
        linalg.norm(data),
        linalg.vector_norm(data, dim=-1),
        linalg.matrix_power(data, 3),
        linalg.solve_triangular(lower, data, upper=False),
    ]


def singular_values(bench: Bench) -> Any:
    return torch.linalg.svdvals(bench.normal(5, 4))


def qr(bench: Bench) -> Any:
    factors = torch.linalg.qr(bench.normal(5, 4))
    return factors.Q @ factors.R


def symmetric_eigenvalues(bench: Bench) -> Any:
    data = bench.normal(5, 5)
    return torch.linalg.eigvalsh(data + data.t())


def eigenvalues(bench: Bench) -> Any:
    return torch.linalg.eigvals(bench.normal(4, 4)).abs().sort()[0]


def least_squares(bench: Bench) -> Any:
    return torch.linalg.lstsq(bench.normal(6, 3), bench.normal(6, 2)).solution


def lu(bench: Bench) -> Any:
    permutation, lower, upper = torch.linalg.lu(bench.normal(4, 4))
    return permutation @ lower @ upper


def exponential_and_pseudo_inverse(bench: Bench) -> Any:
    return torch.linalg.matrix_exp(bench.normal(4, 4)), torch.linalg.pinv(bench.normal(4, 3))


def ldl(bench: Bench) -> Any:
    return torch.linalg.ldl_factor(torch.eye(3, device=bench.device))[0]
