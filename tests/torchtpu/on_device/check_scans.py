"""Scans on the device equal the CPU's, for any shape, dimension and type."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._higher_order_ops import associative_scan

few = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
# Few distinct sizes, because every new shape is a compilation.
shapes = st.lists(st.sampled_from([0, 1, 3, 8]), min_size=0, max_size=3).map(tuple)
SCANS = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")


def draw(shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 9, shape, generator=generator).to(dtype)


def both(name, data, *args, **kwargs):
    expected = getattr(data, name)(*args, **kwargs)
    actual = getattr(data.to("tpu"), name)(*args, **kwargs)
    if name in ("cummax", "cummin"):
        return tuple(expected), tuple(part.cpu() for part in actual)
    return (expected,), (actual.cpu(),)


@pytest.mark.parametrize("name", SCANS)
@given(shape=shapes, pick=st.integers(0, 2), negative=st.booleans())
@few
def test_values_along_any_dimension(name, shape, pick, negative):
    dim = pick % max(1, len(shape))
    dim = dim - max(1, len(shape)) if negative else dim
    if name in ("cummax", "cummin") and shape and shape[dim] == 0:
        return  # the CPU's own indices are unspecified there
    expected, actual = both(name, draw(shape), dim)
    for one, other in zip(expected, actual, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool, torch.uint8])
def test_integers_are_exact(dtype):
    expected, actual = both("cumsum", draw((4, 19), dtype), 1)
    assert torch.equal(expected[0], actual[0]) and actual[0].dtype == torch.int64
    expected, actual = both("cumsum", draw((4, 19), dtype), 1, dtype=torch.float32)
    assert torch.equal(expected[0], actual[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_float_types(dtype):
    expected, actual = both("cumsum", draw((3, 11), dtype), 0)
    assert actual[0].dtype == dtype
    torch.testing.assert_close(actual[0], expected[0], rtol=2e-2, atol=2e-2)


def test_out_and_in_place():
    data = draw((3, 7))
    out = torch.empty(0, device="tpu")
    torch.cumsum(data.to("tpu"), 1, out=out)
    torch.testing.assert_close(out.cpu(), data.cumsum(1))
    changed = data.to("tpu")
    changed.cumprod_(0)
    torch.testing.assert_close(changed.cpu(), data.cumprod(0))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax"])
def test_gradients(name):
    def gradient(device):
        data = draw((5, 6)).to(device).requires_grad_()
        result = getattr(data, name)(1)
        (result[0] if name == "cummax" else result).square().sum().backward()
        return data.grad.cpu()

    torch.testing.assert_close(gradient("tpu"), gradient("cpu"), rtol=1e-4, atol=1e-5)


def test_a_long_scan():
    data = draw((200_000,))
    total = data.to("tpu").cumsum(0).cpu()
    torch.testing.assert_close(total, data.double().cumsum(0).float(), rtol=1e-3, atol=1e-1)


def test_operators_that_scan_inside():
    data, mask = draw((6, 9)), draw((6, 9)) > 0
    source = draw((60,))
    expected = data.masked_scatter(mask, source)
    actual = data.to("tpu").masked_scatter(mask.to("tpu"), source.to("tpu"))
    assert torch.equal(actual.cpu(), expected)
    line = draw((32,)).sigmoid()
    actual = associative_scan(lambda a, b: a * b, line.to("tpu"), 0)
    torch.testing.assert_close(actual.cpu(), line.cumprod(0))


def test_inside_torch_compile():
    data = draw((4, 12))
    run = torch.compile(lambda x: (x @ x.t()).cumsum(0) + x.cummax(1)[0].logcumsumexp(1).sum())
    expected = (data @ data.t()).cumsum(0) + data.cummax(1)[0].logcumsumexp(1).sum()
    torch.testing.assert_close(run(data.to("tpu")).cpu(), expected, rtol=1e-4, atol=1e-4)
