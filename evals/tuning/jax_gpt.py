"""A GPT's training step in plain JAX, lowered for a TPU: `python -m evals.tuning.jax_gpt FILE SIZES ATTENTION`.

Weights and AdamW's state are float32, the forward and backward pass bfloat16 but for norms, softmax and the loss, as
autocast has it. Attention is XLA's (``plain``) or the Pallas kernel that jax brings along (``flash``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

# Codes are (batch, positions); activations have the width behind, heads (batch, positions, heads, width of a head).
Sizes = dict[str, int]
Weights = dict[str, Any]
RATE, BETAS, DECAY, EPSILON, CLIP = 6e-4, (0.9, 0.95), 0.1, 1e-8, 1.0


def shapes(sizes: Sizes) -> Weights:
    """The weights' shapes; a bias beside each matrix where the sizes say so."""
    width, biased = sizes["width"], sizes.get("bias", 0)
    layer = {"norm_1": (width,), "qkv": (width, 3 * width), "out": (width, width)}
    layer |= {"norm_2": (width,), "up": (width, 4 * width), "down": (4 * width, width)}
    if biased:
        layer |= {f"{name}_bias": shape[-1:] for name, shape in list(layer.items())}
    found: Weights = {"symbols": (sizes["vocabulary"], width), "places": (sizes["length"], width), "norm": (width,)}
    if biased:
        found["norm_bias"] = (width,)
    found["layers"] = [layer] * sizes["layers"]
    return jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), found, is_leaf=lambda leaf: isinstance(leaf, tuple)
    )


def _norm(x: Any, weights: Weights, name: str) -> Any:
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weights[name]
    return scaled + weights.get(f"{name}_bias", 0.0)


def _linear(x: Any, weights: Weights, name: str) -> Any:
    y = x.astype(jnp.bfloat16) @ weights[name].astype(jnp.bfloat16)
    bias = weights.get(f"{name}_bias")
    return y if bias is None else y + bias.astype(jnp.bfloat16)


def _attention(q: Any, k: Any, v: Any, flash: bool) -> Any:
    if not flash:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    return flash_attention(q, k, v, causal=True, sm_scale=q.shape[-1] ** -0.5).swapaxes(1, 2)


def _block(x: Any, weights: Weights, heads: int, flash: bool) -> Any:
    batch, length, width = x.shape
    qkv = _linear(_norm(x, weights, "norm_1"), weights, "qkv").reshape(batch, length, 3, heads, width // heads)
    mixed = _attention(*(qkv[:, :, at] for at in range(3)), flash).reshape(batch, length, width)
    x = x + _linear(mixed, weights, "out")
    inner = jax.nn.gelu(_linear(_norm(x, weights, "norm_2"), weights, "up"), approximate=False)
    return x + _linear(inner, weights, "down")


def loss(weights: Weights, codes: Any, targets: Any, heads: int, flash: bool) -> Any:
    """Mean cross entropy over all positions."""
    x = weights["symbols"][codes] + weights["places"][: codes.shape[1]]
    for layer in weights["layers"]:
        x = _block(x, layer, heads, flash)
    x = _norm(x, weights, "norm").astype(jnp.bfloat16)
    logits = (x @ weights["symbols"].T.astype(jnp.bfloat16)).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - chosen).mean()


def step(state: Any, codes: Any, targets: Any, heads: int, flash: bool) -> Any:
    """One step of AdamW with the gradient clipped; the state is (weights, means, squares, count)."""
    weights, means, squares, count = state
    value, gradients = jax.value_and_grad(loss)(weights, codes, targets, heads, flash)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, CLIP / (norm + 1e-6)), gradients)
    count = count + 1
    means = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, means, gradients)
    squares = jax.tree.map(lambda s, g: BETAS[1] * s + (1 - BETAS[1]) * g * g, squares, gradients)

    def moved(weight: Any, mean: Any, square: Any) -> Any:
        shrunk = weight * (1 - RATE * DECAY) if weight.ndim > 1 else weight
        direction = (mean / (1 - BETAS[0] ** count)) / (jnp.sqrt(square / (1 - BETAS[1] ** count)) + EPSILON)
        return shrunk - RATE * direction

    return (jax.tree.map(moved, weights, means, squares), means, squares, count), value


def lowered(sizes: Sizes, flash: bool) -> dict[str, Any]:
    """The step as StableHLO for a TPU, its donated buffers, and the operations of its hand-written kernels."""
    weights = shapes(sizes)
    count = jax.ShapeDtypeStruct((), jnp.float32)
    codes = jax.ShapeDtypeStruct((sizes["batch"], sizes["length"]), jnp.int32)
    traced = jax.jit(step, static_argnums=(3, 4)).trace(
        (weights, weights, weights, count), codes, codes, sizes["heads"], flash
    )
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    number = 3 * len(jax.tree.leaves(weights)) + 1
    return {"text": text, "donated": {str(at): at for at in range(number)}}


def main(path: str, sizes: str, attention: str) -> None:
    """Writes the step as JSON."""
    Path(path).write_text(json.dumps(lowered(json.loads(sizes), attention == "flash")))


if __name__ == "__main__":
    main(*sys.argv[1:])
