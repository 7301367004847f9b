"""Attention without the Mosaic kernel, which only a TPU can run.

`scaled_dot_product_attention` picks `_scaled_dot_product_cudnn_attention`, whose TPU kernel is
written in Mosaic. torch_tpu also has `_scaled_dot_product_fused_attention_overrideable`, the same
function in plain StableHLO, with the same results to save for the backward pass. That one leaves dropout
out without a word, so attention with dropout takes torch's own composition of matrix products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics
    from torchtpu.simulator.kernels import Registry

_ATTENTION = "aten::scaled_dot_product_attention"
_FORWARD = "aten::_scaled_dot_product_cudnn_attention"


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p > 0:
        composed = torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )
        return composed[0]
    return torch.ops.aten.scaled_dot_product_attention.default.decompose(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _forward(
    query: Any,
    key: Any,
    value: Any,
    attn_bias: Any,
    compute_log_sumexp: bool,  # noqa: ARG001  the operator's schema
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    output, logsumexp, *rest = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(
        query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, scale=scale
    )
    # The one keeps [batch, heads, queries], the other's schema says [batch, heads, queries, 1],
    # which is what torch.compile believes.
    return (output, logsumexp.unsqueeze(-1), *rest)


def _backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    philox_seed: Any,
    philox_offset: Any,
    attn_bias: Any,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None = None,
) -> Any:
    grads = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward(
        grad_out,
        query,
        key,
        value,
        attn_bias,
        [True, True, True, False],
        out,
        logsumexp.squeeze(-1),
        cum_seq_q,
        cum_seq_k,
        max_q,
        max_k,
        dropout_p,
        is_causal,
        philox_seed,
        philox_offset,
        scale=scale,
    )
    return grads[:3]


def install(registry: Registry, _numerics: Numerics) -> None:
    """Routes attention to torch_tpu's StableHLO implementation."""
    if registry.exists(_FORWARD):
        registry.replace(_FORWARD, _forward)
        registry.replace(f"{_FORWARD}_backward", _backward)
        registry.replace(_ATTENTION, _attention, "AutogradPrivateUse1")
