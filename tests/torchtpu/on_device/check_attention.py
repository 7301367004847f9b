"""Attention runs on the device whatever backend the program selects, and equals the CPU's."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def heads(*shape, device, seed=0):
    data = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return data.to(device).requires_grad_()


def attend(device, compiled=False, kv_heads=4, **options):
    query = heads(2, 4, 10, 8, device=device)
    key, value = (heads(2, kv_heads, 10, 8, device=device, seed=i) for i in (1, 2))
    if "attn_mask" in options:
        options = options | {"attn_mask": options["attn_mask"].to(device)}

    def run(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, **options)

    output = (torch.compile(run) if compiled else run)(query, key, value)
    output.square().sum().backward()
    return [part.detach().cpu() for part in (output, query.grad, key.grad, value.grad)]


VARIANTS = {
    "plain": {},
    "causal": {"is_causal": True},
    "boolean mask": {"attn_mask": torch.ones(10, 10, dtype=torch.bool).tril()},
    "additive mask": {"attn_mask": torch.linspace(-1, 1, 100).reshape(10, 10)},
    "scaled": {"scale": 0.3},
    "grouped heads": {"kv_heads": 2, "enable_gqa": True},
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", VARIANTS)
def test_values_and_gradients(name, compiled):
    options = VARIANTS[name]
    expected, actual = attend("cpu", **options), attend("tpu", compiled, **options)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
def test_a_program_may_select_the_backend(backend):
    with sdpa_kernel(backend):
        actual = attend("tpu")
    torch.testing.assert_close(actual[0], attend("cpu")[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_dropout_is_applied_and_keeps_the_mean(compiled):
    data = torch.ones(2, 2, 64, 8, device="tpu", requires_grad=True)

    def run(data):
        return F.scaled_dot_product_attention(data, data, data, dropout_p=0.2, is_causal=True)

    torch.manual_seed(0)
    output = (torch.compile(run) if compiled else run)(data)
    output.sum().backward()
    found = output.detach().cpu()
    assert torch.isfinite(found).all() and torch.isfinite(data.grad.cpu()).all()
    assert abs(found.mean().item() - 1) < 0.1 and (found - 1).abs().max() > 0.01


def test_bfloat16():
    query, key, value = (heads(2, 4, 10, 8, device="cpu", seed=i).detach().bfloat16() for i in range(3))
    actual = F.scaled_dot_product_attention(query.to("tpu"), key.to("tpu"), value.to("tpu"))
    expected = F.scaled_dot_product_attention(query, key, value)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.cpu(), expected, rtol=3e-2, atol=3e-2)
