"""Moves every float sum on the CPU by as much as adding its terms up in another order would.

What a device computes otherwise than a CPU is, above all, the order in which it adds. Moving weights by a last bit does
not show that: PyTorch adds up pairwise, so that even 1.6 million squares come out right to the last bit, whatever the
weights. One after another they do not. With terms t_1 .. t_n added in a random order and every addition rounded to a
relative error of at most u = 2**-24, evenly distributed, the error of the sum has the variance

    u**2 / 3 * sum over k of E[s_k**2],   s_k the sum of the first k terms.

Of a total S and squares T = sum of t_i**2, a random order makes E[s_k**2] = (k/n)**2 S**2 + k/n (1 - k/n) T, whose sum
over k is n (S**2 / 3 + T / 6). So the deviation is

    u * sqrt(n * (S**2 / 9 + T / 18)).

It grows with the root of the number of terms, and where terms cancel it stays while the sum becomes small: T is the
scale of the terms themselves. Hardware adds in lanes: n is the number of terms that one of 8 adds up, the fewest that
a vector of float32 has on the machines in question.

Each result is moved by this deviation, up or down: were it drawn from a normal distribution, a factor of all
gradients, such as that of clipping, would now and then not move at all, and the unit of everything be too small. An
element of a result of one shape moves the same way in every step, as a program adds up in the same order each time:
ways drawn anew would cancel in averages over steps, such as AdamW's, where a device's do not (after 20 steps the GPT
below had a ratio of 8.4 with them).

Measured, device against CPU in float32. A GPT of 50,304 words and clipped gradients: the gradient of the last
normalisation's output is off by 8.7e-7 (a sum over all words), all parameters' gradients by 2.2e-6 (the norm's 1.6
million squares) and AdamW's squares by 4.1e-6, where moved weights alone show 1e-7, 2.7e-7 and 2.3e-7. A small residual
network, channels first against channels last on the CPU: the shift of a BatchNorm before another has a gradient whose
terms cancel to a thirtieth, and is off by 7e-6 where moved weights show 1e-6.

Not moved: sums by index (embedding, scatter), pooling, cumulative sums, what is fused otherwise; the unit of error of
these is that of the moved weights, as before.
"""

from __future__ import annotations

import math
import threading
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from torchtpu.proof.kernels import Kernels

ROUNDING = {"torch.float32": 2.0**-24, "torch.float64": 2.0**-53}
LANES = 8
_kept: list[Any] = []


def steps(terms: float) -> float:
    """How many terms one lane adds up."""
    return max(terms / LANES, 1.0)


def relative(terms: float, dtype: object) -> float:
    """The relative deviation of a sum whose terms all have one sign and size."""
    return ROUNDING[str(dtype)] * math.sqrt(steps(terms)) / 3.0


class Sums:
    """Moves results by the deviation of their sums."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.generator = torch._C.Generator()
        self.local = threading.local()

    def error(self, total: Any, square: Any, terms: float) -> Any:
        """One deviation of each sum, up or down.

        Args:
            total: The sums.
            square: The sums of the squares of their terms.
            terms: How many terms each has.
        """
        deviation = (total * total / 9.0 + square / 18.0).sqrt_()
        return self.signs(deviation) * deviation * (ROUNDING[str(deviation.dtype)] * math.sqrt(steps(terms)))

    def share(self, like: Any, terms: float) -> Any:
        """One relative deviation for each element, up or down."""
        return self.signs(like) * relative(terms, like.dtype)

    def signs(self, like: Any) -> Any:
        """As many random signs, for one shape always the same."""
        torch = self.torch
        self.generator.manual_seed(zlib.crc32(repr(tuple(like.shape)).encode()))
        up = torch.rand(like.shape, generator=self.generator) < 0.5
        return torch.where(up, 1.0, -1.0).to(like.dtype)

    def kernel(self, original: Callable[..., Any], move: Callable[..., Any]) -> Callable[..., Any]:
        """An operator whose float32 or float64 result is moved; `move` gets the result and the arguments."""
        local = self.local

        def called(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            first = next((one for one in (made if isinstance(made, tuple) else (made,)) if one is not None), None)
            if getattr(local, "busy", False) or first is None or str(first.dtype) not in ROUNDING or not first.numel():
                return made
            if args[0].dtype != first.dtype:
                return made
            local.busy = True
            try:
                return move(made, *args, **kwargs)
            finally:
                local.busy = False

        return called


class _Products:
    """Matrix products and convolutions: the squares of their terms are the products of squares."""

    def __init__(self, sums: Sums, kernels: Kernels) -> None:
        self.sums = sums
        self.backward_of = kernels.original("convolution_backward", "CPU")

    def product(self, function: Callable[..., Any], *operands: Any, made: Any, terms: float, factor: float = 1) -> Any:
        """A result with one deviation of its sums added."""
        square = function(*(one * one for one in operands)) * factor**2
        return made + self.sums.error(made, square, terms)

    def mm(self, made: Any, one: Any, other: Any) -> Any:
        """``mm``, ``mv`` and ``dot``."""
        return self.product(self.sums.torch.matmul, one, other, terms=one.shape[-1], made=made)

    def addmm(self, made: Any, _added: Any, one: Any, other: Any, alpha: float = 1, **_named: Any) -> Any:
        """``addmm`` and its kin."""
        return self.product(self.sums.torch.matmul, one, other, terms=one.shape[-1], made=made, factor=alpha)

    def convolution(self, made: Any, given: Any, weight: Any, _bias: Any, *options: Any) -> Any:
        """``convolution``, transposed or not."""
        torch, transposed, groups = self.sums.torch, options[3], options[5]
        terms = weight[:, 0].numel() / groups if transposed else weight[0].numel()

        def convolve(one: Any, other: Any) -> Any:
            return torch.convolution(one, other, None, *options)

        return self.product(convolve, given, weight, terms=terms, made=made)

    def convolution_backward(self, made: Any, grad: Any, given: Any, weight: Any, *options: Any) -> Any:
        """Gradients of input, weight and bias."""
        squares = self.backward_of(grad * grad, given * given, weight * weight, *options)
        across = weight[0].numel() if options[4] else weight[:, 0].numel() / options[6]
        each = grad.numel() / grad.shape[1]
        return tuple(
            one if one is None else one + self.sums.error(one, square, terms)
            for one, square, terms in zip(made, squares, (across, each, each), strict=True)
        )


class _Reductions:
    """Sums, means, norms and losses."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def sum(self, made: Any, given: Any, dim: Any = None, keepdim: bool = False, **_named: Any) -> Any:
        """``sum`` over dimensions."""
        axes = _axes(given, dim)
        square = (given * given).sum(axes, keepdim)
        return made + self.sums.error(made, square, _count(given, axes))

    def mean(self, made: Any, given: Any, dim: Any = None, keepdim: bool = False, **_named: Any) -> Any:
        """``mean`` over dimensions."""
        axes = _axes(given, dim)
        terms = _count(given, axes)
        square = (given * given).sum(axes, keepdim)
        return made + self.sums.error(made * terms, square, terms) / terms

    def norm(self, made: Any, given: Any, power: float = 2, dim: Any = None, *_args: Any, **_named: Any) -> Any:
        """``linalg_vector_norm``; a root halves what is relative."""
        if power not in (1, 2):
            return made
        return made * (1 + self.sums.share(made, _count(given, _axes(given, dim))) / power)

    def variance(self, made: Any, given: Any, dim: Any = None, **_named: Any) -> Any:
        """``var``."""
        return made * (1 + self.sums.share(made, _count(given, _axes(given, dim))))

    def loss(self, made: Any, given: Any, *_args: Any, **_named: Any) -> Any:
        """A loss, which has terms of one sign; one that is not added up stays."""
        first, rest = (made[0], made[1:]) if isinstance(made, tuple) else (made, None)
        if first.dim():
            return made
        moved = first * (1 + self.sums.share(first, given.numel() / given.shape[1] if rest else given.numel()))
        return moved if rest is None else (moved, *rest)


class _Softmax:
    """Softmax and its gradient, each with a sum over one dimension."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def plain(self, made: Any, _given: Any, dim: int, *_args: Any) -> Any:
        """``softmax``."""
        return made * (1 + self._share(made, dim))

    def log(self, made: Any, _given: Any, dim: int, *_args: Any) -> Any:
        """``log_softmax``."""
        return made + self._share(made, dim)

    def backward(self, made: Any, grad: Any, output: Any, dim: int, *_args: Any) -> Any:
        """Of ``softmax``."""
        return made - output * self._error(grad * output, dim)

    def log_backward(self, made: Any, grad: Any, output: Any, dim: int, *_args: Any) -> Any:
        """Of ``log_softmax``."""
        return made - output.exp() * self._error(grad, dim)

    def _share(self, made: Any, dim: int) -> Any:
        return self.sums.share(made.narrow(dim, 0, 1), made.shape[dim]) if made.dim() else 0.0

    def _error(self, terms: Any, dim: int) -> Any:
        if not terms.dim():
            return 0.0
        return self.sums.error(terms.sum(dim, True), (terms * terms).sum(dim, True), terms.shape[dim])


class _Norms:
    """Batch and layer normalisation: mean and variance, and three sums on the way back."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def batch(
        self, made: Any, given: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, rate: float,
        _eps: float,
    ) -> Any:  # fmt: skip
        """``native_batch_norm``; in evaluation it has no sums."""
        if not training:
            return made
        output, own, inverse = made
        terms = given.numel() / given.shape[1]
        shape = [1, -1] + [1] * (given.dim() - 2)
        off, share = self._statistics(own, inverse, terms)
        if mean is not None:
            mean += rate * off
            variance -= rate * 2 * share / (inverse * inverse)
        moved = self._output(output, _shaped(weight, shape), _shaped(bias, shape), *(
            one.view(shape) for one in (inverse, off, share)
        ))  # fmt: skip
        return moved, own + off, inverse * (1 + share)

    def layer(self, made: Any, _given: Any, shape: Sequence[int], weight: Any, bias: Any, _eps: float) -> Any:
        """``native_layer_norm``."""
        output, own, inverse = made
        off, share = self._statistics(own, inverse, math.prod(shape))
        return self._output(output, weight, bias, inverse, off, share), own + off, inverse * (1 + share)

    def _statistics(self, mean: Any, inverse: Any, terms: float) -> tuple[Any, Any]:
        square = terms * (mean * mean + 1 / (inverse * inverse))
        return self.sums.error(mean * terms, square, terms) / terms, self.sums.share(mean, terms) / 2

    def _output(self, output: Any, weight: Any, bias: Any, inverse: Any, off: Any, share: Any) -> Any:
        centred = output if bias is None else output - bias
        shift = inverse * off if weight is None else weight * inverse * off
        return output - shift + centred * share

    def batch_backward(
        self, made: Any, grad: Any, given: Any, weight: Any, _mean: Any, _variance: Any, mean: Any, inverse: Any,
        training: bool, _eps: float, *_mask: Any,
    ) -> Any:  # fmt: skip
        """``native_batch_norm_backward``."""
        if not training:
            return made
        shape = [1, -1] + [1] * (given.dim() - 2)
        axes = [axis for axis in range(given.dim()) if axis != 1]
        inverse = inverse.view(shape)
        centred = (given - mean.view(shape)) * inverse
        return self._back(made, grad, centred, inverse, _shaped(weight, shape), axes, axes)

    def layer_backward(
        self, made: Any, grad: Any, given: Any, shape: Sequence[int], mean: Any, inverse: Any, weight: Any, *_rest: Any
    ) -> Any:
        """``native_layer_norm_backward``."""
        rows = list(range(given.dim() - len(shape)))
        inner = list(range(given.dim() - len(shape), given.dim()))
        return self._back(made, grad, (given - mean) * inverse, inverse, weight, inner, rows)

    def _back(
        self, made: Any, grad: Any, centred: Any, inverse: Any, weight: Any, inner: list[int], outer: list[int]
    ) -> Any:
        on_input, on_weight, on_bias = made
        if on_weight is not None:
            on_weight = on_weight + self._sum(grad * centred, outer, False).view_as(on_weight)
        if on_bias is not None:
            on_bias = on_bias + self._sum(grad, outer, False).view_as(on_bias)
        if on_input is not None:
            scaled = grad if weight is None else grad * weight
            off = self._sum(scaled, inner, True) + centred * self._sum(scaled * centred, inner, True)
            on_input = on_input - inverse * off / _count(grad, inner)
        return on_input, on_weight, on_bias

    def _sum(self, terms: Any, axes: list[int], keep: bool) -> Any:
        if not axes:
            return self.sums.torch.zeros_like(terms)
        return self.sums.error(terms.sum(axes, keep), (terms * terms).sum(axes, keep), _count(terms, axes))


def _shaped(value: Any, shape: list[int]) -> Any:
    return None if value is None else value.view(shape)


def _axes(given: Any, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(given.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def _count(given: Any, axes: Sequence[int]) -> int:
    return math.prod(given.shape[axis] for axis in axes) if given.dim() else 1


def _table(sums: Sums, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    products, reductions, softmax, norms = _Products(sums, kernels), _Reductions(sums), _Softmax(sums), _Norms(sums)
    return {
        **dict.fromkeys(("mm", "bmm", "mv", "dot"), products.mm),
        **dict.fromkeys(("addmm", "baddbmm", "addmv"), products.addmm),
        "convolution": products.convolution,
        "convolution_backward": products.convolution_backward,
        "sum.dim_IntList": reductions.sum,
        "mean.dim": reductions.mean,
        "linalg_vector_norm": reductions.norm,
        "var.correction": reductions.variance,
        **dict.fromkeys(
            ("nll_loss_forward", "nll_loss2d_forward", "mse_loss", "binary_cross_entropy", "smooth_l1_loss"),
            reductions.loss,
        ),
        "_softmax": softmax.plain,
        "_log_softmax": softmax.log,
        "_softmax_backward_data": softmax.backward,
        "_log_softmax_backward_data": softmax.log_backward,
        "native_batch_norm": norms.batch,
        "native_batch_norm_backward": norms.batch_backward,
        "native_layer_norm": norms.layer,
        "native_layer_norm_backward": norms.layer_backward,
    }


def install(torch: Any) -> None:
    """Moves sums from here on; attention is computed by products and softmax, not fused."""
    kernels, sums = Kernels(torch), Sums(torch)
    _kept.append(kernels)
    torch._C._set_sdp_use_flash(False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        for name, move in _table(sums, kernels).items():
            if kernels.reaches(name, "CPU"):
                kernels.put(name, sums.kernel(kernels.original(name, "CPU"), move), "CPU")
