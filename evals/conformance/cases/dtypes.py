"""Number types: integers, floats of every width, complex."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

from typing import Any

import torch

from evals.conformance.bench import Bench


def float64(bench: Bench) -> Any:
    data = bench.normal(7, 7, dtype=torch.float64)
    line = torch.linspace(0, 1, 5, dtype=torch.float64, device=bench.device)
    return data @ data, data.exp(), data.sum(), line


def complex64(bench: Bench) -> Any:
    data = bench.on(torch.complex(bench.normal(4, 4).cpu(), bench.normal(4, 4, seed=2).cpu()))
    polar = torch.polar(bench.normal(3).abs(), bench.normal(3, seed=1))
    parts = (data.real + 0, torch.view_as_real(data), data.conj() + 0)
    return data * data, data @ data, data.abs(), data.angle(), parts, polar


def complex128(bench: Bench) -> Any:
    real, imaginary = (bench.normal(4, 4, seed=i).cpu().double() for i in range(2))
    data = bench.on(torch.complex(real, imaginary))
    return data * data, data.exp()


def int64(bench: Bench) -> Any:
    data = bench.on([2**41 + 5, -3, 11])
    return (
        data * data,
        data // 3,
        data % 4,
        data << 2,
        data & 6,
        torch.bitwise_xor(data, data + 1),
        data.sum(),
        data.max(),
        data.float(),
        data**2,
    )


def narrow_integers(bench: Bench) -> Any:
    signed = (torch.int8, torch.uint8, torch.int16, torch.int32)
    computed = [bench.on(torch.arange(9, dtype=dtype)) * 3 + 1 for dtype in signed]
    unsigned = (torch.uint16, torch.uint32)  # the CPU itself has no arange for them
    return computed + [bench.on(torch.arange(6).to(dtype)) for dtype in unsigned]


def half_and_bfloat16(bench: Bench) -> Any:
    outputs = []
    for dtype in (torch.float16, torch.bfloat16):
        data = bench.normal(12, 12, dtype=dtype)
        outputs += [data + 1, (data @ data).float(), data.softmax(-1), data.sum()]
    return outputs


def float8(bench: Bench) -> Any:
    data = bench.normal(12, 12)
    return [data.to(dtype).float() for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)]
