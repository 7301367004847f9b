"""Several processes: NCCL is gloo, and a module is wrapped without a list of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement

_asked = "nccl"


def _backend(name: Any) -> Any:
    global _asked
    if isinstance(name, str) and "nccl" in name.lower():
        _asked = name
        return "gloo"
    return name


def _initialise(original: Callable[..., Any]) -> Callable[..., Any]:
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        return original("gloo" if backend is None else _backend(backend), *args, **kwargs)

    return init_process_group


def _group(original: Callable[..., Any]) -> Callable[..., Any]:
    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        return original(ranks, timeout, _backend(backend), *args, **kwargs)

    return new_group


def _name(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_backend(*args: Any, **kwargs: Any) -> Any:
        name = original(*args, **kwargs)
        return _asked if name == "gloo" else name

    return get_backend


def _averaging(dist: Any) -> Callable[[Any], Callable[..., Any]]:
    """Gloo has no average: the sum is divided."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            op = kwargs.get("op", args[0] if args and isinstance(args[0], dist.ReduceOp.RedOpType) else None)
            if op != dist.ReduceOp.AVG:
                return original(tensor, *args, **kwargs)
            kwargs["op"], asynchronous = dist.ReduceOp.SUM, kwargs.pop("async_op", False)
            original(tensor, *args[1:], **kwargs)
            tensor.div_(dist.get_world_size(kwargs.get("group")))
            return _Done() if asynchronous else None

        return reduce

    return make


class _Done:
    """The handle of an operation that is complete."""

    def wait(self, *_args: Any) -> bool:
        """Has nothing to wait for."""
        return True

    def is_completed(self) -> bool:
        """Tells that it is."""
        return True


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    def init(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kw: Any) -> None:
        del device_ids, output_device  # one device a process
        original(self, module, None, None, *args, **kw)

    return init


def _hook_data_parallel(torch: Any) -> None:
    parallel: Any = torch.nn.DataParallel
    create = parallel.__init__

    def init(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        if device_ids is not None and len(device_ids) > 1:
            wrapping.unimitated("torch.nn.DataParallel", f"{len(device_ids)} devices in one process")
            device_ids = list(device_ids)[:1]
        create(self, module, device_ids, output_device, dim)

    def forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        def moved(value: Any) -> Any:
            if isinstance(value, placement._tensor):
                return value.to("cuda")
            if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
                return type(value)(moved(item) for item in value)
            return {key: moved(item) for key, item in value.items()} if type(value) is dict else value

        return self.module(*moved(inputs), **moved(kwargs))

    parallel.__init__, parallel.forward = init, forward


def install(torch: Any) -> None:
    """Changes torch.distributed, DistributedDataParallel and DataParallel."""
    _hook_data_parallel(torch)
    dist = torch.distributed
    if not dist.is_available():
        return
    from torch.distributed import distributed_c10d
    from torch.nn.parallel import distributed as ddp

    for module in (dist, distributed_c10d):
        wrapping.over(module, "init_process_group", _initialise)
        wrapping.over(module, "new_group", _group)
        wrapping.over(module, "get_backend", _name)
        wrapping.over(module, "all_reduce", _averaging(dist))
        wrapping.over(module, "is_nccl_available", lambda _original: lambda: True)
    wrapping.over(ddp.DistributedDataParallel, "__init__", _wrap)
