"""Stand-ins for the functions of ``flash_attn`` and the layers and optimizers of ``apex``."""

from __future__ import annotations

from typing import Any

from torchtpu.proof import wrapping

_CALL = "flash_attn.flash_attn_func"


def _mask(torch: Any, queries: int, keys: int, causal: bool, window: tuple[int, int]) -> Any:
    """The keys each query sees: the last query sees the last key."""
    left, right = window
    right = 0 if causal else right
    if left < 0 and right < 0:
        return None
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - (keys - queries)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if left >= 0:
        seen &= distance >= -left
    if right >= 0:
        seen &= distance <= right
    return seen


def attend(
    torch: Any,
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
) -> Any:
    """Attention of tensors of shape [batch, sequence, heads, width]."""
    function = torch.nn.functional.scaled_dot_product_attention
    grouped = q.shape[2] != k.shape[2]
    heads_first = [t.transpose(1, 2) for t in (q, k, v)]
    plain = causal and q.shape[1] == k.shape[1] and tuple(window_size) == (-1, -1)
    mask = None if plain else _mask(torch, q.shape[1], k.shape[1], causal, window_size)
    made = function(*heads_first, mask, dropout_p, plain, scale=softmax_scale, enable_gqa=grouped)
    return made.transpose(1, 2)


def _checked(kwargs: dict[str, Any]) -> dict[str, Any]:
    for name in ("softcap", "alibi_slopes", "return_attn_probs", "block_table"):
        if kwargs.pop(name, None):
            wrapping.refuse(_CALL, f"{name} has no equivalent in PyTorch")()
    kwargs.pop("deterministic", None)
    return kwargs


def attention(torch: Any) -> dict[str, Any]:
    """Returns the functions of ``flash_attn``."""

    def flash_attn_func(q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        return attend(torch, q, k, v, *args, **_checked(kwargs))

    def flash_attn_kvpacked_func(q: Any, kv: Any, *args: Any, **kwargs: Any) -> Any:
        return flash_attn_func(q, *kv.unbind(2), *args, **kwargs)

    def flash_attn_qkvpacked_func(qkv: Any, *args: Any, **kwargs: Any) -> Any:
        return flash_attn_func(*qkv.unbind(2), *args, **kwargs)

    def flash_attn_varlen_func(
        q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, _most_q: int, _most_k: int, *args: Any, **kw: Any
    ) -> Any:
        ends = zip(cu_seqlens_q.tolist(), cu_seqlens_k.tolist(), strict=True)
        made, (first_q, first_k) = [], next(ends)
        for end_q, end_k in ends:
            parts = q[None, first_q:end_q], k[None, first_k:end_k], v[None, first_k:end_k]
            made.append(flash_attn_func(*parts, *args, **kw)[0])
            first_q, first_k = end_q, end_k
        return torch.cat(made)

    functions = (flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func, flash_attn_varlen_func)
    return {function.__name__: function for function in functions}


def normalization(torch: Any) -> dict[str, Any]:
    """Returns the layers of ``apex.normalization``."""
    nn = torch.nn
    return {
        "FusedLayerNorm": nn.LayerNorm,
        "MixedFusedLayerNorm": nn.LayerNorm,
        "FusedRMSNorm": nn.RMSNorm,
        "MixedFusedRMSNorm": nn.RMSNorm,
    }


def optimizers(torch: Any) -> dict[str, Any]:
    """Returns the optimizers of ``apex.optimizers``."""

    class FusedAdam(torch.optim.AdamW):  # type: ignore[misc]
        """Adam, with decoupled decay unless it is told otherwise, as apex has it."""

        def __init__(self, params: Any, lr: float = 1e-3, *, weight_decay: float = 0.0, **kwargs: Any) -> None:
            if not kwargs.pop("adam_w_mode", True) and weight_decay:
                wrapping.refuse("apex.optimizers.FusedAdam", "adam_w_mode=False is torch.optim.Adam")()
            known = {name: kwargs[name] for name in ("betas", "eps", "amsgrad") if name in kwargs}
            super().__init__(params, lr=lr, weight_decay=weight_decay, **known)

    return {"FusedAdam": FusedAdam, "FusedSGD": torch.optim.SGD}
