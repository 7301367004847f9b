"""Device objects and contexts: ``torch.device(0)`` is CUDA, and a default device of CUDA makes CPU tensors."""

from __future__ import annotations

from typing import Any

from torchtpu.proof.oracle import placement


def _device_type(real: Any) -> Any:
    class _Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return type(value) is real

        def __subclasscheck__(cls, other: Any) -> bool:
            return other in (cls, real)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], int) and len(args) == 1:
                return real("cuda", args[0])
            return real(*args, **kwargs)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

    # The C type cannot be subclassed; objects stay its own.
    return _Meta("device", (), {"__module__": "torch", "__qualname__": "device", "__doc__": real.__doc__})


def _hook_context(module: Any) -> None:
    context = module.DeviceContext
    create = context.__init__

    def init(self: Any, device: Any) -> None:
        # torch enters it without its methods, so that the place is asked of it.
        self.place = placement.read(device)
        create(self, placement.real(device))

    context.__init__ = init
    placement.context = context


def _hook_default(torch: Any) -> None:
    get_default = torch.get_default_device

    def get_default_device() -> Any:
        place = placement.default()
        return get_default() if place == placement.HOST else placement.device("cuda", place)

    torch.get_default_device = get_default_device


def _hook_accelerator(torch: Any) -> None:
    accelerator = torch.accelerator
    real = placement.device
    accelerator.is_available = lambda: True
    accelerator.device_count = placement.device_count
    accelerator.current_accelerator = lambda check_available=False: real("cuda")  # noqa: ARG005  torch's signature
    accelerator.current_device_index = accelerator.current_device_idx = lambda: placement.state.current
    accelerator.synchronize = lambda device=None: None  # noqa: ARG005
    accelerator.set_device_index = accelerator.set_device_idx = lambda device: torch.cuda.set_device(device)


def _hook_generator(torch: Any) -> None:
    real = torch.Generator

    class _Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __call__(cls, device: Any = "cpu") -> Any:
            return real(placement.real(device))

    torch.Generator = _Meta("Generator", (), {"__module__": "torch", "__doc__": real.__doc__})


def install(torch: Any) -> None:
    """Takes over what makes devices and generators."""
    import torch.utils._device as contexts

    # Computed once and kept by torch: it must list torch's own functions, which call its modes.
    contexts._device_constructors()
    _hook_context(contexts)
    _hook_default(torch)
    _hook_accelerator(torch)
    _hook_generator(torch)
    torch.device = _device_type(placement.device)
