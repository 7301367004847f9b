"""Keeps a program in float32: autocast stays off, and what it converts to half precision it gets in float32.

Two runs in float32 differ by rounding alone, so that an error of the program cannot hide behind a coarse
type. A tensor then says ``float32`` where it would have said ``float16``; bits that are reinterpreted
(``view``) and types inside compiled code are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle.factories import names as factory_names

_CONVERTING = ("sum", "mean", "prod", "cumsum", "cumprod", "nansum", "softmax", "log_softmax", "norm")
_NEW = ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided")
_WORDS = ("Half", "BFloat16")


class _Wide:
    """Maps dtypes of half precision to their full ones."""

    def __init__(self, torch: Any) -> None:
        self.tensor = torch.Tensor
        self.full = torch.float32
        self.dtypes = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}

    def dtype(self, value: Any) -> Any:
        """Returns the dtype to take for one that was asked for; anything else as it is."""
        try:
            return self.dtypes.get(value, value)
        except TypeError:  # an argument that cannot be a key is no dtype
            return value

    def function(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose dtype comes by keyword."""
        dtypes = self.dtypes

        def function(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dtype") in dtypes:
                kwargs["dtype"] = dtypes[kwargs["dtype"]]
            return original(*args, **kwargs)

        return function

    def conversion(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """``Tensor.to``: a conversion that would have copied still copies."""
        dtypes = self.dtypes

        def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            asked = kwargs.get("dtype")
            for value in args:
                asked = value if type(value) is type(self.full) else asked
            if asked not in dtypes:
                return original(tensor, *args, **kwargs)
            args = tuple(self.dtype(value) for value in args)
            if "dtype" in kwargs:
                kwargs["dtype"] = self.dtype(kwargs["dtype"])
            return original(tensor, *args, **{**kwargs, "copy": True})

        return to

    def half(self, _original: Callable[..., Any]) -> Callable[..., Any]:
        """``Tensor.half`` and ``Tensor.bfloat16``."""

        def to_float(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            return tensor.to(self.full, *args, copy=True, **kwargs)

        return to_float

    def named(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """``Tensor.type`` and the setters of defaults, which also take the names of tensor types."""

        def function(*args: Any, **kwargs: Any) -> Any:
            args = tuple(self._name(self.dtype(value)) for value in args)
            return original(*args, **{name: self._name(self.dtype(value)) for name, value in kwargs.items()})

        return function

    def _name(self, value: Any) -> Any:
        text = str(value)
        for word in _WORDS:
            if text.endswith(f"torch.{word}Tensor") or text.endswith(f"torch.cuda.{word}Tensor"):
                return text.replace(f"{word}Tensor", "FloatTensor")
        return value

    def loader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that loads a structure of tensors."""

        def load(*args: Any, **kwargs: Any) -> Any:
            return self.widen(original(*args, **kwargs))

        return load

    def widen(self, value: Any, depth: int = 6) -> Any:
        """Returns a structure with its tensors in full precision; dicts and lists are changed in place."""
        if isinstance(value, self.tensor):
            return value.to(self.dtypes[value.dtype]) if value.dtype in self.dtypes else value
        if depth and isinstance(value, dict | list):
            for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
                wide = self.widen(item, depth - 1)
                if wide is not item:
                    value[key] = wide
        return value


def _hook_autocast(torch: Any) -> None:
    autocast = torch.amp.autocast
    enter = autocast.__enter__

    def entered(self: Any) -> Any:
        self._enabled = False
        return enter(self)

    autocast.__enter__ = entered


def install(torch: Any) -> None:
    """Widens every conversion from here on."""
    wide = _Wide(torch)
    for name in factory_names():
        if callable(getattr(torch, name, None)):
            wrapping.over(torch, name, wide.function)
    for name in _NEW:
        wrapping.over(torch.Tensor, name, wide.function)
    for name in _CONVERTING:
        wrapping.over(torch.Tensor, name, wide.function)
        wrapping.over(torch, name, wide.function)
    wrapping.over(torch.Tensor, "to", wide.conversion)
    for name in ("half", "bfloat16"):
        wrapping.over(torch.Tensor, name, wide.half)
    wrapping.over(torch.Tensor, "type", wide.named)
    for name in ("set_default_dtype", "set_default_tensor_type"):
        wrapping.over(torch, name, wide.named)
    for name in ("load", "from_numpy"):
        wrapping.over(torch, name, wide.loader)
    _hook_autocast(torch)
