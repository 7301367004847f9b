"""Elementwise functions, reductions, shapes, Fourier transforms, products."""
# ruff: noqa: D103, N812  a case is named by what it does; F is its name everywhere

from typing import Any

import torch
import torch.nn.functional as F

from evals.conformance.bench import Bench

_ANY_SIGN = (
    "sin cos tan atan sinh asinh erf exp expm1 ceil floor round trunc frac sign abs neg square "
    "sigmoid tanh sinc nan_to_num i0"
)
_POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma"


def elementwise(bench: Bench) -> Any:
    data = bench.normal(5, 7)
    positive = data.abs() + 0.1

    def run(data: torch.Tensor, positive: torch.Tensor) -> Any:
        unary = [getattr(torch, name)(data) for name in _ANY_SIGN.split()]
        unary += [getattr(torch, name)(positive) for name in _POSITIVE.split()]
        pairs = (
            torch.atan2,
            torch.fmod,
            torch.remainder,
            torch.maximum,
            torch.hypot,
            torch.logaddexp,
            torch.copysign,
            torch.heaviside,
            torch.floor_divide,
            torch.special.xlogy,
            torch.nextafter,
        )
        binary = [function(data, positive) for function in pairs]
        rest = [
            torch.pow(positive, data),
            torch.where(data > 0, data, positive),
            torch.clamp(data, -0.5, 0.5),
            torch.special.erfinv(data.tanh()),
            torch.isfinite(data),
            torch.polygamma(1, positive),
        ]
        return unary + binary + rest

    return bench.compiled(run)(data, positive)


def foreach(bench: Bench) -> Any:
    tensors = [bench.normal(3), bench.normal(4)]
    torch._foreach_add_(tensors, 1.0)
    roots = torch._foreach_sqrt([tensor.abs() for tensor in tensors])
    return torch._foreach_mul(tensors, tensors), torch._foreach_norm(tensors), roots


def reductions(bench: Bench) -> Any:
    data = bench.normal(4, 5, 6)
    return [
        data.sum((0, 2)),
        data.mean(-1, keepdim=True),
        data.var(0),
        data.std(),
        data.prod(-1),
        data.amax((1, 2)),
        data.any(),
        data.all(-1),
        data.logsumexp(-1),
        data.norm(),
        torch.var_mean(data, -1),
        data.min(1),
        data.argmin(1),
        data.count_nonzero(),
        data.nansum(),
        torch.aminmax(data),
    ]


def shapes(bench: Bench) -> Any:
    data = bench.normal(2, 3, 4)
    row, next_row = data[0, 0], data[0, 1]
    return [
        data.flip(1),
        data.roll(1, 2),
        data.rot90(),
        data.repeat(1, 2, 1),
        data.repeat_interleave(2, 1),
        data.tile(2),
        data.expand(5, 2, 3, 4),
        data.movedim(0, 2).contiguous(),
        torch.cat([data, data], 1),
        torch.stack([data, data]),
        torch.chunk(data, 2, 2),
        torch.tril(data),
        torch.triu(data, 1),
        torch.diag_embed(data),
        torch.block_diag(data[0], data[1]),
        torch.meshgrid(row, next_row, indexing="ij"),
        torch.combinations(row),
        torch.tril_indices(3, 3, device=bench.device),
        F.one_hot(bench.on([1, 2]), 4),
    ]


def products(bench: Bench) -> Any:
    left, right = bench.normal(3, 4, 5), bench.normal(3, 5, 6)
    vector = right[0, :, 0]
    return [
        torch.bmm(left, right),
        torch.einsum("bij,bjk->bik", left, right),
        torch.baddbmm(bench.normal(3, 4, 6), left, right, beta=0.5),
        torch.addmm(bench.normal(4, 6), left[0], right[0], alpha=2),
        torch.matmul(left, right[0]),
        torch.mv(left[0], vector),
        torch.dot(left[0, 0], vector),
        torch.outer(vector, vector),
        torch.tensordot(left, right, ([2], [1])),
        torch.kron(left[0], left[0]),
        torch.cdist(left, left),
        torch.cross(bench.normal(4, 3), bench.normal(4, 3, seed=1), dim=-1),
    ]


def product_of_int8(bench: Bench) -> Any:
    data = bench.on(torch.arange(64, dtype=torch.int8).reshape(8, 8))
    return torch._int_mm(data, data)


def fourier(bench: Bench) -> Any:
    data = bench.normal(4, 12)
    spectrum = torch.fft.rfft(data)
    back = torch.fft.irfft(spectrum)
    return [torch.fft.fft(data), spectrum, back, torch.fft.fft2(data), torch.fft.fftshift(data)]


def short_time_fourier(bench: Bench) -> Any:
    window = torch.hann_window(64, device=bench.device)
    return torch.stft(bench.normal(2, 320), 64, window=window, return_complex=True)
