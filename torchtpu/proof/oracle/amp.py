"""Autocast and its relatives: what is asked of CUDA is switched on for the CPU, with CUDA's own default dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping


def _is_cuda(device_type: Any) -> bool:
    return isinstance(device_type, str) and device_type.partition(":")[0] == "cuda"


def _first(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument, where it has one, is a device type."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if args and _is_cuda(args[0]):
            args = ("cpu", *args[1:])
        return original(*args, **kwargs)

    return function


class _Dtypes:
    """The dtypes autocast takes where none is named."""

    def __init__(self, torch: Any) -> None:
        self.get, self.set = torch.get_autocast_dtype, torch.set_autocast_dtype
        self.cuda = torch.float16

    def get_dtype(self, device_type: str) -> Any:
        """Returns the dtype of a device type."""
        return self.cuda if _is_cuda(device_type) else self.get(device_type)

    def set_dtype(self, device_type: str, dtype: Any) -> None:
        """Sets the dtype of a device type."""
        if _is_cuda(device_type):
            self.cuda = dtype
        else:
            self.set(device_type, dtype)


def _hook_autocast(torch: Any, dtypes: _Dtypes) -> None:
    autocast = torch.amp.autocast
    create = autocast.__init__

    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if _is_cuda(device_type):
            dtype = dtypes.cuda if dtype is None else dtype
            device_type = "cpu"
        create(self, device_type, dtype, *args, **kwargs)

    autocast.__init__ = init


def install(torch: Any) -> None:
    """Changes torch.autocast in place, so that every name of it follows."""
    dtypes = _Dtypes(torch)
    _hook_autocast(torch, dtypes)
    torch.get_autocast_dtype, torch.set_autocast_dtype = dtypes.get_dtype, dtypes.set_dtype
    torch.get_autocast_gpu_dtype = lambda: dtypes.cuda
    torch.set_autocast_gpu_dtype = lambda dtype: dtypes.set_dtype("cuda", dtype)
    enabled, set_enabled = torch.is_autocast_enabled, torch.set_autocast_enabled
    # Without an argument these two mean CUDA.
    torch.is_autocast_enabled = lambda device_type="cuda": enabled("cpu" if _is_cuda(device_type) else device_type)

    def set_autocast_enabled(*args: Any) -> None:
        device_type, value = args if len(args) == 2 else ("cuda", *args)
        set_enabled("cpu" if _is_cuda(device_type) else device_type, value)

    torch.set_autocast_enabled = set_autocast_enabled
    wrapping.over(torch.amp, "is_autocast_available", _first)
