"""What the simulated device cannot do is refused by name; draws that would hang do not."""

import pytest
import torch

from torchtpu.simulator.limits import SimulatorLimit


def test_pallas_kernels_and_jax_operators_are_refused():
    jax = pytest.importorskip("jax")
    from jax.experimental import pallas as pl
    from torch_tpu._internal import pallas

    def body(left, right, out):
        out[...] = left[...] + right[...]

    def kernel(left: jax.Array, right: jax.Array) -> jax.Array:
        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(left.shape, left.dtype))(left, right)

    def plain(data: jax.Array) -> jax.Array:
        return jax.numpy.sin(data) * 2

    data = torch.ones(8, 128, device="tpu")
    with pytest.raises(SimulatorLimit, match="Pallas kernel 'checks::kernel'"):
        pallas.jax_op("checks::kernel", kernel)(data, data)
    with pytest.raises(SimulatorLimit, match="JAX operator 'checks::plain'"):
        pallas.jax_op("checks::plain", plain)(data)
    assert (data + 1).sum().item() == 2048


@pytest.fixture(params=["eager", "fused"])
def _mode(request):
    before = torch.tpu.eager_mode
    if request.param == "fused":
        torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
    yield
    torch.tpu.eager_mode = before


@pytest.mark.usefixtures("_mode")
def test_normal_draws_with_tensors():
    torch.manual_seed(0)
    mean, deviation = torch.full((20_000,), 3.0, device="tpu"), torch.full((20_000,), 2.0, device="tpu")
    out = torch.empty(0, device="tpu")
    torch.normal(mean, deviation, out=out)
    for draws in (torch.normal(mean, deviation), torch.normal(mean, 2.0), torch.normal(3.0, deviation), out):
        found = draws.cpu()
        assert found.shape == (20_000,)
        assert abs(found.mean().item() - 3) < 0.1 and abs(found.std().item() - 2) < 0.1
    assert torch.normal(mean[:3], deviation[:2, None]).shape == (2, 3)
    assert abs(torch.normal(mean).std().item() - 1) < 0.05
