"""Keeps a program in float32: autocast stays off, and what it converts to half precision it gets in float32.

Or in bfloat16: there, what it asks for in float16, in which a TPU does not compute, it gets in bfloat16.

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


class _Wide:
    """Maps the dtypes that are not taken to those that are."""

    def __init__(self, torch: Any, dtypes: dict[Any, Any], words: dict[str, str]) -> None:
        self.tensor = torch.Tensor
        self.kind = type(torch.float32)
        self.dtypes, self.words = dtypes, words

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
                asked = value if type(value) is self.kind else asked
            if asked not in dtypes:
                return original(tensor, *args, **kwargs)
            args = tuple(self.dtype(value) for value in args)
            if "dtype" in kwargs:
                kwargs["dtype"] = self.dtype(kwargs["dtype"])
            return original(tensor, *args, **{**kwargs, "copy": True})

        return to

    def method(self, asked: Any) -> Callable[[Any], Callable[..., Any]]:
        """``Tensor.half`` and ``Tensor.bfloat16``."""
        taken = self.dtypes[asked]

        def make(_original: Callable[..., Any]) -> Callable[..., Any]:
            def convert(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                return tensor.to(taken, *args, copy=True, **kwargs)

            return convert

        return make

    def named(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """``Tensor.type`` and the setters of defaults, which also take the names of tensor types."""

        def function(*args: Any, **kwargs: Any) -> Any:
            args = tuple(self._name(self.dtype(value)) for value in args)
            return original(*args, **{name: self._name(self.dtype(value)) for name, value in kwargs.items()})

        return function

    def _name(self, value: Any) -> Any:
        text = str(value)
        for word, taken in self.words.items():
            if text.endswith((f"torch.{word}Tensor", f"torch.cuda.{word}Tensor")):
                return f"torch.{'cuda.' * ('cuda' in text)}{taken}Tensor"
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


def _switch_off(autocast: Any) -> None:
    enter = autocast.__enter__

    def entered(self: Any) -> Any:
        self._enabled = False
        return enter(self)

    autocast.__enter__ = entered


def _narrow(autocast: Any, dtypes: dict[Any, Any]) -> None:
    enter = autocast.__enter__

    def entered(self: Any) -> Any:
        self.fast_dtype = dtypes.get(self.fast_dtype, self.fast_dtype)
        return enter(self)

    autocast.__enter__ = entered


def _wrap(torch: Any, wide: _Wide) -> None:
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
        if getattr(torch, name) in wide.dtypes:
            wrapping.over(torch.Tensor, name, wide.method(getattr(torch, name)))
    wrapping.over(torch.Tensor, "type", wide.named)
    for name in ("set_default_dtype", "set_default_tensor_type"):
        wrapping.over(torch, name, wide.named)
    for name in ("load", "from_numpy"):
        wrapping.over(torch, name, wide.loader)


def install(torch: Any, precision: str) -> None:
    """Converts no more to what is not taken.

    Args:
        torch: The module.
        precision: ``float32``, or ``bfloat16`` for bfloat16 where the program asks for float16.
    """
    if precision == "float32":
        full = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
        wide = _Wide(torch, full, {"Half": "Float", "BFloat16": "Float"})
        _switch_off(torch.amp.autocast)
    else:
        wide = _Wide(torch, {torch.float16: torch.bfloat16}, {"Half": "BFloat16"})
        _narrow(torch.amp.autocast, wide.dtypes)
    _wrap(torch, wide)
