"""Functions that make tensors take the CPU for CUDA and note the place that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement

_HOST_ONLY = ("from_numpy", "from_file", "frombuffer")
_MORE = (
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "hann_window",
    "hamming_window",
    "bartlett_window",
    "blackman_window",
    "kaiser_window",
    "range",
    "normal",
    "empty_permuted",
    "empty_quantized",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sparse_compressed_tensor",
)


def _make(original: Callable[..., Any]) -> Callable[..., Any]:
    put, default = placement.put, placement.default
    tensor_type = placement._tensor

    def factory(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)  # there is no memory to pin
        device = kwargs.get("device")
        if device is None:
            like = args[0] if args and isinstance(args[0], tensor_type) else None
            place: int | None = default() if like is None else placement.of(like)
        else:
            place = placement.read(device)
            if place is not None:
                kwargs["device"] = placement._cpu
        made = original(*args, **kwargs)
        return made if place is None or not isinstance(made, tensor_type) else put(made, place)

    return factory


def _convert(original: Callable[..., Any]) -> Callable[..., Any]:
    """``as_tensor`` and ``asarray`` return what they are given when it is already where it should be."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _named(args, kwargs)
        device, data = kwargs.get("device"), args[0] if args else kwargs.get("data")
        place = placement.read(device)
        if place is not None:
            kwargs["device"] = placement._cpu
        made = original(*args, **kwargs)
        if isinstance(data, placement._tensor):
            return made if place is None else made.to(device)
        if device is not None and place is None:
            return made
        return placement.put(made, placement.default() if place is None else place)

    return convert


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = ("dtype", "device")
    return args[:1], {**kwargs, **dict(zip(names, args[1:], strict=False))}


def _on_host(original: Callable[..., Any]) -> Callable[..., Any]:
    def factory(*args: Any, **kwargs: Any) -> Any:
        return placement.put(original(*args, **kwargs), placement.HOST)

    return factory


def names() -> list[str]:
    """Returns the names in torch of the functions that make tensors, as tensors or from other values."""
    from torch.utils._device import _device_constructors

    return sorted({function.__name__ for function in _device_constructors()}.union(_MORE))


def install(torch: Any) -> None:
    """Wraps every factory of torch."""
    converting = ("as_tensor", "asarray")
    for name in names():
        if name not in converting and callable(getattr(torch, name, None)):
            wrapping.over(torch, name, _make)
    for name in converting:
        wrapping.over(torch, name, _convert)
    for name in _HOST_ONLY:
        wrapping.over(torch, name, _on_host)
    for name in ("fftfreq", "rfftfreq"):
        wrapping.over(torch.fft, name, _make)
