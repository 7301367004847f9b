"""Tensor types of before torch 1: ``torch.cuda.FloatTensor`` and its kin, and the default tensor type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement
from torchtpu.proof.oracle.placement import HOST

_NAMES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


class _Type(type):
    """The type of the stand-ins: calling one makes a tensor, and a tensor on CUDA is an instance by its dtype."""

    dtype: Any
    cpu: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.cpu(*args, **{k: v for k, v in kwargs.items() if k != "device"})
        return placement.put(made, placement.state.current)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, placement._tensor) and value.dtype is cls.dtype and value.is_cuda

    def __str__(cls) -> str:
        return f"torch.cuda.{cls.__name__}"


def _type(types: dict[str, Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            name = str(original(self))
            return name.replace("torch.", "torch.cuda.", 1) if self.is_cuda else name
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = types[dtype.rpartition(".")[2]]
        if isinstance(dtype, _Type):
            return self.to("cuda", dtype.dtype, non_blocking=non_blocking)
        return original(self, dtype, non_blocking, **kwargs)

    return method


def _default(torch: Any, types: dict[str, Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def set_default_tensor_type(kind: Any) -> None:
        if isinstance(kind, str) and kind.startswith("torch.cuda."):
            kind = types[kind.rpartition(".")[2]]
        if isinstance(kind, _Type):
            torch.set_default_dtype(kind.dtype)
            placement.state.default = placement.state.current
        else:
            original(kind)
            placement.state.default = HOST

    return set_default_tensor_type


def install(torch: Any) -> None:
    """Puts the stand-ins into torch.cuda."""
    types: dict[str, Any] = {}
    for name, dtype in _NAMES.items():
        members = {"dtype": getattr(torch, dtype), "cpu": getattr(torch, name), "__module__": "torch.cuda"}
        types[name] = _Type(name, (), members)
        setattr(torch.cuda, name, types[name])
    wrapping.over(torch.Tensor, "type", lambda original: _type(types, original))
    wrapping.over(torch, "set_default_tensor_type", lambda original: _default(torch, types, original))
