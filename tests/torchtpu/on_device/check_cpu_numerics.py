"""TPU numerics on the CPU are those of the simulated device: the same operands are rounded, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torchtpu.proof import numerics


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


A, B, C = normal(12, 16), normal(16, 10, seed=1), normal(12, 10, seed=2)
PARTS = normal(3, 4, 16), normal(3, 16, 5, seed=1)
IMAGE, KERNEL, BIAS = normal(2, 3, 8, 8), normal(4, 3, 3, 3, seed=1), normal(4, seed=2)
QKV = tuple(normal(2, 2, 6, 8, seed=s) for s in range(3))

FUNCTIONS = {
    "mm": (torch.mm, (A, B)),
    "matmul": (torch.matmul, (PARTS[0], B)),
    "bmm": (torch.bmm, PARTS),
    "addmm": (torch.addmm, (C, A, B)),
    "baddbmm": (torch.baddbmm, (normal(3, 4, 5, seed=4), *PARTS)),
    "mv": (torch.mv, (A, B[:, 0].contiguous())),
    "dot": (torch.dot, (A[0].contiguous(), B[:, 1].contiguous())),
    "linear": (F.linear, (A, B.t().contiguous(), normal(10))),
    "linear of three axes": (F.linear, (normal(3, 4, 16), B.t().contiguous(), normal(10))),
    "linear without bias": (F.linear, (A, B.t().contiguous())),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), PARTS),
    "conv1d": (F.conv1d, (normal(2, 3, 9), normal(4, 3, 3, seed=1), BIAS)),
    "conv2d": (F.conv2d, (IMAGE, KERNEL, BIAS)),
    "conv2d with groups": (lambda x, w: F.conv2d(x, w, groups=2, padding=1), (normal(2, 4, 6, 6), normal(4, 2, 3, 3))),
    "conv_transpose2d": (F.conv_transpose2d, (normal(2, 4, 5, 5), KERNEL)),
    "attention": (F.scaled_dot_product_attention, QKV),
    "causal attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), QKV),
}


def results(function, arguments, device):
    given = [a.to(device).detach().requires_grad_() for a in arguments]
    made = function(*given)
    made.backward(normal(*made.shape, seed=9).to(device))
    return [made.detach().cpu(), *(a.grad.cpu() for a in given)]


@pytest.fixture(scope="module")
def exact():
    # Before the numerics are put in place, which cannot be taken back.
    values = {name: results(*FUNCTIONS[name], "cpu") for name in FUNCTIONS}
    values["model"] = trained("cpu")
    numerics.install(torch)
    return values


def trained(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.GELU(), nn.Flatten(), nn.Linear(8 * 36, 32), nn.LayerNorm(32), nn.Linear(32, 4)
    ).to(device)
    for parameter in model.parameters():
        parameter.data = normal(*parameter.shape, seed=parameter.numel()).mul(0.2).to(device)
    loss = F.cross_entropy(model(IMAGE.to(device)), torch.tensor([1, 3], device=device))
    loss.backward()
    return [loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters())]


def ratio(device, cpu, reference):
    return float((device - reference).norm() / (cpu - reference).norm().clamp_min(1e-30))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(exact, name):
    on_device, on_cpu = results(*FUNCTIONS[name], "tpu"), results(*FUNCTIONS[name], "cpu")
    for actual, expected, reference in zip(on_device, on_cpu, exact[name], strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-5)
        if (expected - reference).norm() > 1e-3:
            assert ratio(actual, expected, reference) == pytest.approx(1, abs=0.01)


def test_a_model(exact):
    ratios = [ratio(*each) for each in zip(trained("tpu"), trained("cpu"), exact["model"], strict=True)]
    assert ratios == pytest.approx([1] * len(ratios), abs=0.1)


def test_half_products_are_rounded_once(exact):
    a, b = A.bfloat16(), B.bfloat16()
    assert torch.equal(a @ b, (a.float() @ b.float()).bfloat16())
    assert (a @ b).dtype is torch.bfloat16
    q, k, v = (t.bfloat16().requires_grad_() for t in QKV)
    made = F.scaled_dot_product_attention(q, k, v)
    made.float().sum().backward()
    assert made.dtype is q.grad.dtype is torch.bfloat16


def test_asking_for_precision_keeps_float32(exact):
    torch.set_float32_matmul_precision("high")
    try:
        torch.testing.assert_close(A @ B, exact["mm"][0], rtol=1e-6, atol=1e-6)
    finally:
        torch.set_float32_matmul_precision("medium")
    assert (A @ B - exact["mm"][0]).abs().max() > 1e-4
