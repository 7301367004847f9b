"""Grouped matrix products, which torch_tpu lowers to `chlo.ragged_dot` and XLA:CPU cannot emit.

Groups are runs of rows whose ends are data on the device, so each group's product is taken over
all rows and a mask keeps its own: as many products as groups, no host synchronisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torchtpu.simulator.limits import SimulatorLimit

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics
    from torchtpu.simulator.kernels import Registry


def _group_masks(ends: Any, rows: int) -> list[Any]:
    """Returns one boolean mask of shape [rows] a group; row i is in the group whose run holds it."""
    index = torch.arange(rows, device=ends.device, dtype=ends.dtype)
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    return [(index >= starts[g]) & (index < ends[g]) for g in range(ends.shape[0])]


def _rows_by_group(lhs: Any, rhs: Any, ends: Any) -> Any:
    """Multiplies row runs of ``lhs`` [M, K] by their own matrix of ``rhs`` [G, K, N]: [M, N]."""
    out = lhs.new_zeros((lhs.shape[0], rhs.shape[-1]))
    for group, mask in enumerate(_group_masks(ends, lhs.shape[0])):
        out = torch.where(mask[:, None], lhs @ rhs[group], out)
    return out


def _columns_by_group(lhs: Any, rhs: Any, ends: Any) -> Any:
    """Multiplies ``lhs`` [G, M, K] by column runs of ``rhs`` [K, N]: [M, N]."""
    return _rows_by_group(rhs.t(), lhs.transpose(1, 2), ends).t().contiguous()


def _inner_by_group(lhs: Any, rhs: Any, ends: Any) -> Any:
    """Contracts each run of ``lhs`` [M, K] and ``rhs`` [K, N] along K by itself: [G, M, N]."""
    masks = _group_masks(ends, lhs.shape[1])
    if not masks:
        return lhs.new_zeros((0, lhs.shape[0], rhs.shape[1]))
    # where(), not a product: rows outside every run may hold anything, even NaN.
    zero = torch.zeros((), dtype=lhs.dtype, device=lhs.device)
    return torch.stack([torch.where(m, lhs, zero) @ torch.where(m[:, None], rhs, zero) for m in masks])


def _grouped_mm(
    self: Any,
    mat2: Any,
    offs: Any = None,
    bias: Any = None,
    out_dtype: torch.dtype | None = None,  # noqa: ARG001  torch_tpu takes only the input's
) -> Any:
    if bias is not None:
        raise SimulatorLimit("a grouped matrix product with a bias", "add the bias afterwards")
    if offs is None:
        return torch.bmm(self, mat2)
    if self.dim() == 2 and mat2.dim() == 2:
        return _inner_by_group(self, mat2, offs)
    if self.dim() == 2:
        return _rows_by_group(self, mat2, offs)
    return _columns_by_group(self, mat2, offs)


def _ragged_dot(lhs: Any, rhs: Any, group_sizes: Any) -> Any:
    return _rows_by_group(lhs, rhs, group_sizes.cumsum(0))


def _ragged_dot_out(lhs: Any, rhs: Any, group_sizes: Any, *, out: Any) -> Any:
    return out.copy_(_ragged_dot(lhs, rhs, group_sizes))


def _ragged_dot_weight_grad(lhs: Any, grad_output: Any, group_sizes: Any) -> Any:
    return _inner_by_group(lhs.t(), grad_output, group_sizes.cumsum(0))


def install(registry: Registry, _numerics: Numerics) -> None:
    """Replaces `_grouped_mm` and torch_tpu's own ragged products."""
    # The products inside are matrix products of their own, so TPU numerics reach them by dispatch.
    for name, kernel in (
        ("aten::_grouped_mm", _grouped_mm),
        ("tpu::_ragged_dot", _ragged_dot),
        ("tpu::_ragged_dot.out", _ragged_dot_out),
        ("tpu::_ragged_dot_weight_grad", _ragged_dot_weight_grad),
    ):
        if registry.exists(name):
            registry.replace(name, kernel)
