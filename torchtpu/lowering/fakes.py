"""Lets a program run its whole course with tensors on the device that have shape and type but no data.

What the program does on the CPU (reading data, shuffling, counting) is done in earnest. A tensor that
goes to the device loses its data there; one that comes back brings made-up numbers, and the place is
remembered, since a value the host waits for is what stalls a TPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "tpu"
_aten: Any = torch.ops.aten
_READS = (_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default)


class NeedsData(RuntimeError):
    """The shape of a result depends on data that a run on fake tensors does not have."""


def _is_fake(value: Any) -> bool:
    return isinstance(value, FakeTensor)


def _made_up(dtype: torch.dtype) -> Any:
    # One for a loss or a norm, which may be divided by; false for a check that something went wrong.
    return 1.0 if dtype.is_floating_point or dtype.is_complex else dtype is not torch.bool and 1


class FakeDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gives every tensor on the device a shape and a type only.

    Attributes:
        on_operator: Called after each operator on the device with operator, arguments, keywords and result.
        on_read: Called when the host asks for a value, with the operator's name.
    """

    def __init__(self, on_operator: Callable[..., None] | None = None, on_read: Callable[[str], None] | None = None):
        super().__init__()  # type: ignore[no-untyped-call]
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self.on_operator = on_operator
        self.on_read = on_read
        self.lock = threading.RLock()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator on the CPU in earnest, and on the device for its shapes only."""
        kwargs = kwargs or {}
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if not any(map(_is_fake, leaves)):
            target = kwargs.get("device")
            if target is None or torch.device(target).type != DEVICE:
                return func(*args, **kwargs)
        return self._on_device(func, args, kwargs)

    def _on_device(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in _READS:
            return self._read(func, args)
        if func is _aten.copy_.default and not _is_fake(args[0]):
            self._told(func)
            return args[0].fill_(_made_up(args[0].dtype))
        if func is _aten._to_copy.default and (kwargs.get("device") or torch.device(DEVICE)).type == "cpu":
            self._told(func)
            dtype = kwargs.get("dtype") or args[0].dtype
            return torch.full(args[0].shape, _made_up(dtype), dtype=dtype)
        try:
            with self.fakes:
                result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise NeedsData(f"the shape of what {func} returns depends on data; a captured step has none") from error
        except UnsupportedOperatorException as error:
            raise NeedsData(f"{func} cannot tell the shape of its result without data") from error
        if self.on_operator is not None:
            with self.lock:
                self.on_operator(func, args, kwargs, result)
        return result

    def _read(self, func: Any, args: Any) -> Any:
        self._told(func)
        return _made_up(args[0].dtype) if func is _READS[0] else False

    def _told(self, func: Any) -> None:
        if self.on_read is not None:
            self.on_read(str(func))
