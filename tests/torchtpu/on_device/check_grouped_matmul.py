"""Grouped matrix products equal a loop over the groups, with gradients, eager and compiled."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

few = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def by_loop(left, right, ends):
    starts = [0, *ends[:-1]]
    if left.dim() == 2 and right.dim() == 3:
        parts = [left[s:e] @ right[g] for g, (s, e) in enumerate(zip(starts, ends, strict=True))]
        parts.append(left.new_zeros(left.shape[0] - ends[-1], right.shape[-1]))
        return torch.cat(parts)
    if left.dim() == 3:
        parts = [left[g] @ right[:, s:e] for g, (s, e) in enumerate(zip(starts, ends, strict=True))]
        return torch.cat(parts, 1)
    return torch.stack([left[:, s:e] @ right[s:e] for s, e in zip(starts, ends, strict=True)])


def on_device(left, right, ends):
    offsets = torch.tensor(ends, dtype=torch.int32, device="tpu")
    return torch._grouped_mm(left.to("tpu"), right.to("tpu"), offsets).cpu()


@given(cuts=st.lists(st.integers(0, 8), min_size=3, max_size=3).map(sorted))
@few
def test_rows_by_group_with_empty_groups_and_a_rest(cuts):
    left, right = normal(8, 16), normal(3, 16, 5)
    torch.testing.assert_close(on_device(left, right, cuts), by_loop(left, right, cuts))


@given(cuts=st.lists(st.integers(0, 8), min_size=2, max_size=2).map(sorted))
@few
def test_contraction_by_group(cuts):
    left, right = normal(6, 8), normal(8, 5)
    torch.testing.assert_close(on_device(left, right, [*cuts, 8]), by_loop(left, right, [*cuts, 8]))


def test_columns_by_group_and_plain_batches():
    left, right = normal(3, 4, 16), normal(16, 8)
    torch.testing.assert_close(on_device(left, right, [2, 2, 8]), by_loop(left, right, [2, 2, 8]))
    batch = normal(3, 16, 5)
    actual = torch._grouped_mm(left.to("tpu"), batch.to("tpu"), None).cpu()
    torch.testing.assert_close(actual, left @ batch)


def test_rest_does_not_leak_nan():
    left, right = normal(6, 8), normal(8, 5)
    left[:, 5:] = float("nan")
    assert torch.isfinite(on_device(left, right, [2, 5])).all()


def test_bfloat16_keeps_its_type():
    left, right = normal(8, 16).bfloat16(), normal(2, 16, 8).bfloat16()
    actual = on_device(left, right, [3, 8])
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, by_loop(left, right, [3, 8]), rtol=2e-2, atol=2e-2)


def test_gradients_of_an_expert_layer():
    def gradients(device, multiply):
        left = normal(8, 16).to(device).requires_grad_()
        right = normal(2, 16, 8).to(device).requires_grad_()
        multiply(left, right).square().sum().backward()
        return left.grad.cpu(), right.grad.cpu()

    offsets = torch.tensor([3, 8], dtype=torch.int32, device="tpu")
    actual = gradients("tpu", lambda a, b: F.grouped_mm(a, b, offs=offsets))
    expected = gradients("cpu", lambda a, b: by_loop(a, b, [3, 8]))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_torch_tpus_own_ragged_product():
    left, right, sizes = normal(8, 16), normal(2, 16, 5), torch.tensor([3, 5])
    actual = torch.ops.tpu._ragged_dot(left.to("tpu"), right.to("tpu"), sizes.to("tpu"))
    torch.testing.assert_close(actual.cpu(), by_loop(left, right, [3, 8]))
    gradient = normal(8, 5)
    actual = torch.ops.tpu._ragged_dot_weight_grad(left.to("tpu"), gradient.to("tpu"), sizes.to("tpu"))
    torch.testing.assert_close(actual.cpu(), by_loop(left.t(), gradient, [3, 8]))


@pytest.mark.parametrize("ends", [[3, 8], [0, 8]])
def test_inside_torch_compile(ends):
    left, right = normal(8, 16), normal(2, 16, 8)
    run = torch.compile(lambda a, b, o: F.grouped_mm(a, b, offs=o) + 1)
    offsets = torch.tensor(ends, dtype=torch.int32, device="tpu")
    actual = run(left.to("tpu"), right.to("tpu"), offsets).cpu()
    torch.testing.assert_close(actual, by_loop(left, right, ends) + 1)
