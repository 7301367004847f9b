"""Stand-ins for the attention of ``xformers.ops``."""

from __future__ import annotations

from typing import Any

from torchtpu.proof import wrapping

_CALL = "xformers.ops.memory_efficient_attention"


class LowerTriangularMask:
    """Says that a query sees the keys up to its own place."""


def operators(torch: Any) -> dict[str, Any]:
    """Returns the functions of ``xformers.ops``."""

    def memory_efficient_attention(
        query: Any, key: Any, value: Any, attn_bias: Any = None, p: float = 0.0, scale: float | None = None, **_op: Any
    ) -> Any:
        if query.dim() == 3:
            parts = (query[:, :, None], key[:, :, None], value[:, :, None])
            return memory_efficient_attention(*parts, attn_bias, p, scale)[:, :, 0]
        triangle = _is_triangle(attn_bias)
        if not triangle and not (attn_bias is None or isinstance(attn_bias, torch.Tensor)):
            wrapping.refuse(_CALL, f"attn_bias is a {type(attn_bias).__name__}")()
        first = [t.transpose(1, 2) for t in (query, key, value)]
        mask = None if triangle else attn_bias
        made = torch.nn.functional.scaled_dot_product_attention(*first, mask, p, triangle, scale=scale)
        return made.transpose(1, 2)

    return {
        "memory_efficient_attention": memory_efficient_attention,
        "LowerTriangularMask": LowerTriangularMask,
        "unbind": torch.unbind,
    }


def _is_triangle(bias: Any) -> bool:
    return bias is LowerTriangularMask or isinstance(bias, LowerTriangularMask)
