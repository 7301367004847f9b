"""What a tensor says of its device, and its moves between the CPU and CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement
from torchtpu.proof.oracle.placement import HOST


def _hook_properties(torch: Any) -> None:
    tensor, base = torch.Tensor, torch._C.TensorBase
    data_of = base.data
    device, of, on_cpu, cpu = placement.device, placement.of, placement.on_cpu, placement._cpu
    elsewhere = base.device

    def says(self: Any) -> Any:
        if not on_cpu(self):
            return elsewhere.__get__(self)
        place = of(self)
        return cpu if place == HOST else device("cuda", place)

    def data(self: Any) -> Any:
        return placement.put(data_of.__get__(self), of(self))

    def set_data(self: Any, value: Any) -> None:
        place = of(value)
        data_of.__set__(self, value)
        placement.put(self, place)

    tensor.device = property(says)
    tensor.is_cuda = property(lambda self: on_cpu(self) and of(self) != HOST)
    tensor.is_cpu = property(lambda self: on_cpu(self) and of(self) == HOST)
    tensor.data = property(data, set_data)
    tensor.get_device = lambda self: of(self) if on_cpu(self) else base.get_device(self)


def move(original: Callable[..., Any], tensor: Any, place: int, *args: Any, **kwargs: Any) -> Any:
    """Calls ``Tensor.to`` so that it copies exactly where a machine with a GPU would."""
    here = placement.known(tensor)
    if here != place and (here is not None or place != HOST or placement.of(tensor) != HOST):
        kwargs["copy"] = True
    return placement.put(original(tensor, placement._cpu, *args, **kwargs), place)


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            target = kwargs.pop("device")
        elif args and placement.is_device(args[0]):
            target, args = args[0], args[1:]
        else:
            return _without_device(original, self, args, kwargs)
        place = placement.read(target)
        if place is None or not placement.on_cpu(self):
            return original(self, placement.real(target), *args, **kwargs)
        return move(original, self, place, *args, **kwargs)

    return to


def _without_device(original: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    other = args[0] if args else kwargs.get("other")
    if isinstance(other, placement._tensor) and placement.on_cpu(other) and placement.on_cpu(self):
        kwargs = {name: value for name, value in kwargs.items() if name != "other"}
        return move(original, self, placement.of(other), other.dtype, *args[1:], **kwargs)
    made = original(self, *args, **kwargs)
    return made if made is self or not placement.on_cpu(self) else placement.put(made, placement.of(self))


def _hook_moves(torch: Any) -> None:
    tensor = torch.Tensor
    original = tensor.to
    wrapping.over(tensor, "to", _to)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        kwargs = {} if memory_format is None else {"memory_format": memory_format}
        return self.to("cuda" if device is None else device, non_blocking=non_blocking, **kwargs)

    def cpu(self: Any, memory_format: Any = None) -> Any:
        if not placement.on_cpu(self):
            return placement.put(original(self, "cpu"), HOST)
        kwargs = {} if memory_format is None else {"memory_format": memory_format}
        return move(original, self, HOST, **kwargs)

    def pin_memory(self: Any, device: Any = None) -> Any:  # noqa: ARG001  torch's signature
        return placement.put(self.clone(), HOST)

    tensor.cuda, tensor.cpu, tensor.pin_memory = cuda, cpu, pin_memory
    tensor.is_pinned = lambda self, device=None: placement.known(self) == HOST  # noqa: ARG005
    tensor.record_stream = lambda self, stream: None  # noqa: ARG005


def _follow(original: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose result stays where its tensor is."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        place = placement.known(self)
        return made if place is None or made is self else placement.put(made, place)

    return method


def _new(original: Callable[..., Any]) -> Callable[..., Any]:
    def factory(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        place = placement.read(kwargs.get("device"))
        if place is not None:
            kwargs["device"] = placement._cpu
        elif kwargs.get("device") is None and placement.on_cpu(self):
            place = placement.of(self)
        made = original(self, *args, **kwargs)
        return made if place is None else placement.put(made, place)

    return factory


def install(torch: Any) -> None:
    """Changes torch.Tensor and Parameter."""
    _hook_properties(torch)
    _hook_moves(torch)
    for name in ("detach", "clone", "contiguous", "float", "double", "half", "bfloat16", "int", "long", "bool"):
        wrapping.over(torch.Tensor, name, _follow)
    for name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided", "new"):
        wrapping.over(torch.Tensor, name, _new)
