"""Sums of bfloat16 numbers are those of float32 rounded once, as a TPU computes them."""

import pytest
import torch
import torch.nn.functional as F


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


ROWS, IMAGE = normal(512, 24), normal(2, 3, 16, 16)


def bias_of(layer, data):
    def gradient(values):
        made = layer.to(values.device, values.dtype)
        made.zero_grad()
        output = made(values)
        output.backward(normal(*output.shape, seed=3).to(values.device, values.dtype))
        return made.bias.grad

    return gradient, data


def of_added(values):
    bias = torch.zeros(24, device=values.device, dtype=values.dtype, requires_grad=True)
    (values + bias).backward(values)
    return bias.grad


def of_pooled(values):
    given = values.detach().requires_grad_()
    F.avg_pool2d(given, 5, 1).backward(normal(2, 3, 12, 12, seed=4).to(values.device, values.dtype))
    return given.grad


SUMS = {
    "sum": (lambda x: x.sum(0), ROWS),
    "sum of all": (torch.sum, ROWS),
    "sum kept": (lambda x: x.sum(0, keepdim=True), ROWS),
    "sum of a part": (lambda x: x[::2].t().sum(1), ROWS),
    "product": (lambda x: x.prod(0), (1 + ROWS.float() / 64).bfloat16()),
    "linear": bias_of(torch.nn.Linear(24, 8), ROWS),
    "linear of three axes": bias_of(torch.nn.Linear(24, 8), ROWS.view(8, 64, 24)),
    "convolution": bias_of(torch.nn.Conv2d(3, 4, 3), IMAGE),
    "broadcast": (of_added, ROWS),
    "pooled": (lambda x: F.avg_pool2d(x, 8), IMAGE),
    "pooled to a size": (lambda x: F.adaptive_avg_pool2d(x, 2), IMAGE),
    "pooled, backwards": (of_pooled, IMAGE),
}


def off(made, exact):
    return float((made.detach().cpu().double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_rounded_once(name):
    function, data = SUMS[name]
    exact = function(data.double()).detach()
    made = function(data.to("tpu"))
    assert made.dtype is torch.bfloat16
    assert made.shape == exact.shape
    # Rounding once is off by 2**-9 at most, by 0.0016 on average.
    assert off(made, exact) < 1.3 * max(off(exact.bfloat16(), exact), 0.0014)


def test_compiled():
    made = torch.compile(lambda x: (x * 2).sum(0))(ROWS.to("tpu"))
    assert off(made, (ROWS.double() * 2).sum(0)) < 0.0021


def test_other_types_are_left_alone():
    whole = torch.arange(40).view(8, 5)
    assert torch.equal(whole.to("tpu").sum(0).cpu(), whole.sum(0))
    torch.testing.assert_close(ROWS.float().to("tpu").sum(0).cpu(), ROWS.float().sum(0))
    widened = ROWS.to("tpu").sum(0, dtype=torch.float32)
    assert widened.dtype is torch.float32
    assert off(widened, ROWS.double().sum(0)) < 1e-6
    assert ROWS.float().to("tpu").sum(0, dtype=torch.bfloat16).dtype is torch.bfloat16
    assert torch.equal((ROWS > 0).to("tpu").sum().cpu(), (ROWS > 0).sum())
