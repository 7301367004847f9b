"""Draws every random number from the CPU generator, whatever device it is for, and logs the draws.

Kernels over torch's own, below autograd: an operator that draws for a TPU tensor draws into memory of the
CPU with the same shape, strides and dtype and copies the result, so that the same program with the same seed
draws the same numbers on every device. Seeds for one device alone (``torch.cuda.manual_seed``) draw no part
in it; generators made for a device are CPU generators.

Only operators the device has are redirected: one it lacks fails as it would without this.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torchtpu.proof import places
from torchtpu.proof.kernels import Kernels

MAX_LOGGED = 20_000
_DEVICE_KEY = "PrivateUse1"

# Operators of the CPU that draw, and take the tensor to fill first.
_IN_PLACE = (
    "bernoulli_.float",
    "bernoulli_.Tensor",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "random_.from",
    "random_.to",
    "uniform_",
)
# Operators that return what they draw.
_RETURNING = (
    "multinomial",
    "normal.Tensor_Tensor",
    "normal.Tensor_float",
    "normal.float_Tensor",
    "poisson",
    "binomial",
    "_standard_gamma",
    "_sample_dirichlet",
    "rrelu_with_noise",
    "native_dropout",
)
# Operators that write what they draw to their argument ``out``.
_OUT = (
    "bernoulli.out",
    "multinomial.out",
    "normal.Tensor_Tensor_out",
    "normal.Tensor_float_out",
    "normal.float_Tensor_out",
    "randperm.generator_out",
)
_RECURRENT = ("lstm.input", "gru.input")


@dataclass(frozen=True)
class Draw:
    """One draw.

    Attributes:
        number: Its place in the sequence of the process, from 0.
        op: The operator without overload, such as ``bernoulli``.
        shape: Of the numbers drawn.
        dtype: Of the numbers drawn.
        where: The user's ``file:line``; empty where none is on the stack.
    """

    number: int
    op: str
    shape: tuple[int, ...]
    dtype: str
    where: str


class _Log:
    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.count = 0
        self.pid = os.getpid()
        self.inside = threading.local()

    def add(self, op: str, tensor: Any) -> None:
        number, self.count = self.count, self.count + 1
        if number < MAX_LOGGED and self.pid == os.getpid():
            shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
            self.draws.append(Draw(number, op, shape, dtype, places.users_line()))


_log = _Log()
_kept: list[Any] = []


def log() -> list[dict[str, Any]]:
    """Returns the draws of this process so far, the first ``MAX_LOGGED`` of them, as JSON values."""
    return [asdict(draw) for draw in _log.draws]


def count() -> int:
    """Returns how many draws this process has made, those beyond the log included."""
    return _log.count


def _short(name: str) -> str:
    return name.partition(".")[0].rstrip("_")


def _logged(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    op, inside = _short(name), _log.inside

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "active", False):
            return original(*args, **kwargs)
        inside.active = True
        try:
            drawn = original(*args, **kwargs)
        finally:
            inside.active = False
        _log.add(op, drawn[0] if isinstance(drawn, tuple) else drawn)
        return drawn

    return kernel


def _twin(torch: Any, tensor: Any) -> Any:
    """Memory of the CPU in which numbers are drawn in the order they would be for a CPU tensor."""
    return torch.empty_like(tensor, device="cpu")


def _host(torch: Any, values: Any) -> Any:
    return [value.cpu() if isinstance(value, torch.Tensor) else value for value in values]


def _into(torch: Any, draw: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.copy_(draw(_twin(torch, self), *_host(torch, args), **kwargs))

    return kernel


def _returning(torch: Any, draw: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        device = next(value.device for value in args if isinstance(value, torch.Tensor))
        drawn = draw(*_host(torch, args), **kwargs)
        return tuple(t.to(device) for t in drawn) if isinstance(drawn, tuple) else drawn.to(device)

    return kernel


def _to_out(torch: Any, draw: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any, out: Any, **kwargs: Any) -> Any:
        drawn = draw(*_host(torch, args), out=torch.empty_like(out, device="cpu"), **kwargs)
        return out.resize_(drawn.shape).copy_(drawn)

    return kernel


def _dropout(torch: Any) -> Callable[..., Any]:
    """The device's dropout, made of the steps the CPU takes: the same numbers, divided before they multiply."""

    def kernel(input: Any, p: float, train: bool | None = True) -> Any:  # noqa: A002  the operator's schema
        if not train or p == 0:
            return input.clone(), torch.ones_like(input, dtype=torch.bool)
        kept = _twin(torch, input).bernoulli_(1 - p)
        mask = kept.bool()
        noise = kept if p == 1 else kept.div_(1 - p)
        return input * noise.to(input.device), mask.to(input.device)

    return kernel


def _layered(torch: Any, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A recurrent network of several layers with dropout between them, whose kernel would draw by itself."""
    states = 2 if name.startswith("lstm") else 1

    def kernel(input: Any, hx: Any, params: Any, *options: Any) -> Any:  # noqa: A002  the operator's schema
        biases, layers, dropout, train, both, batch_first = options
        if not (train and dropout > 0 and layers > 1):
            return original(input, hx, params, *options)
        again, each = getattr(torch.ops.aten, name.partition(".")[0]).input, len(params) // layers
        hidden = [state.chunk(layers) for state in (hx if states == 2 else [hx])]
        # The CPU lays time first, and draws in that order.
        value, last = input.transpose(0, 1) if batch_first else input, []
        for layer in range(layers):
            value = torch.dropout(value, dropout, True) if layer else value
            start = [state[layer] for state in hidden]
            weights = params[layer * each : (layer + 1) * each]
            value, *ends = again(value, start if states == 2 else start[0], weights, biases, 1, 0.0, train, both, False)
            last.append(ends)
        return (
            value.transpose(0, 1) if batch_first else value,
            *(torch.cat(parts) for parts in zip(*last, strict=True)),
        )

    return kernel


def _hook_generator(torch: Any, device_type: str) -> None:
    real = torch.Generator

    class _Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __call__(cls, device: Any = "cpu") -> Any:
            return real("cpu" if str(device).partition(":")[0] == device_type else device)

    torch.Generator = _Meta("Generator", (), {"__module__": "torch", "__doc__": real.__doc__})


def _hook_states(torch: Any, device_type: str) -> None:
    """The device's generator state is the CPU's, as no other is drawn from."""
    module = getattr(torch, device_type, None)
    get_state, set_state = torch.get_rng_state, torch.set_rng_state
    if module is None:
        return
    # The module looks at its callers, so that only these names are replaced.
    module.get_rng_state = lambda device=None: get_state()  # noqa: ARG005  torch's signature
    module.set_rng_state = lambda new_state, device=None: set_state(new_state)  # noqa: ARG005


def _redirect(torch: Any, kernels: Kernels) -> None:
    for names, make in ((_IN_PLACE, _into), (_RETURNING, _returning), (_OUT, _to_out)):
        for name in names:
            if kernels.has(name, _DEVICE_KEY):
                kernels.put(name, make(torch, kernels.operator(name)), _DEVICE_KEY)
    for name in _RECURRENT:
        if kernels.has(name, _DEVICE_KEY):
            kernels.put(name, _layered(torch, name, kernels.original(name, _DEVICE_KEY)), _DEVICE_KEY)
    if kernels.has("native_dropout", _DEVICE_KEY):
        kernels.put("native_dropout", _dropout(torch), _DEVICE_KEY)


def install(torch: Any) -> None:
    """Redirects and logs from here on; the device, where there is one, must be up."""
    kernels = Kernels(torch)
    _kept.append(kernels)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        for name in (*_IN_PLACE, *_RETURNING, *_OUT):
            if kernels.has(name, "CPU"):
                kernels.put(name, _logged(name, kernels.original(name, "CPU")), "CPU")
        if "torch_tpu" in sys.modules:
            _redirect(torch, kernels)
    if "torch_tpu" in sys.modules:
        device_type = torch._C._get_privateuse1_backend_name()
        _hook_generator(torch, device_type)
        _hook_states(torch, device_type)
