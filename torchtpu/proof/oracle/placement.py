"""Remembers where the program has put each tensor, and reads device arguments.

A place is the index of a CUDA device, or HOST. It is kept as an attribute of the tensor object; a view
asks the tensor it shows.
"""

from __future__ import annotations

import os
from typing import Any

HOST = -1
_TAG = "_torchtpu_place"


class _State:
    """The process's own: whether anything was put on CUDA, the current device, the default of factories."""

    def __init__(self) -> None:
        self.used = False
        self.current = 0
        self.default = HOST


state = _State()
device: Any = None
# The class of torch's default device contexts, once they tell their place.
context: Any = ()
_cpu: Any = None
_stack_length: Any = None
_stack_at: Any = None


def device_count() -> int:
    """Returns how many CUDA devices the program sees: one for each rank of this machine."""
    return max(1, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))


def read(value: Any) -> int | None:
    """Returns the place a device argument names; None for no device, or one that is neither CPU nor CUDA."""
    if value is None:
        return None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else HOST
    kind, index = value, None
    if isinstance(value, str):
        kind, _, number = value.partition(":")
        index = int(number) if number.isdigit() else None
    elif type(value) is device:
        kind, index = value.type, value.index
    if kind == "cuda":
        return state.current if index is None else int(index)
    return HOST if kind == "cpu" else None


def default() -> int:
    """Returns the place of tensors that are made without a device."""
    for index in range(_stack_length() - 1, -1, -1):
        mode = _stack_at(index)
        if isinstance(mode, context):
            place: int | None = mode.place
            return HOST if place is None else place
    return state.default


def is_device(value: Any) -> bool:
    """Tells whether an argument names a device rather than a dtype or a tensor."""
    return isinstance(value, str) or type(value) is device or (isinstance(value, int) and not isinstance(value, bool))


def real(value: Any) -> Any:
    """Returns the device to take where the program names one: the CPU for CUDA."""
    return value if read(value) is None else _cpu


def on_cpu(tensor: Any) -> bool:
    """Tells whether a tensor has memory, which then is the CPU's."""
    # torch calls a class's own attribute while a mode is active, so that one is asked which is not replaced.
    return not _is_meta(tensor)


def put(tensor: Any, place: int) -> Any:
    """Notes that a tensor is at a place, and returns it."""
    if place != HOST:
        state.used = True
    try:
        tensor.__dict__[_TAG] = place
    except AttributeError:
        return tensor  # an object without attributes of its own
    return tensor


def known(tensor: Any) -> int | None:
    """Returns where a tensor was put; None for one that was computed."""
    place: int | None = tensor.__dict__.get(_TAG)
    if place is None and tensor._base is not None:
        place = tensor._base.__dict__.get(_TAG)
    return place


def of(tensor: Any) -> int:
    """Returns the place a tensor says it is at."""
    place = known(tensor)
    if place is None:
        return state.current if state.used else HOST
    return place


def put_all(value: Any, place: int, depth: int = 6) -> Any:
    """Notes the place of every tensor in a structure of lists, tuples and mappings, and returns it."""
    if isinstance(value, _tensor):
        return put(value, place)
    if depth and isinstance(value, dict):
        for item in value.values():
            put_all(item, place, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in value[:4096]:
            put_all(item, place, depth - 1)
    return value


def _nothing_used() -> None:
    state.used = False


_tensor: Any = ()
_is_meta: Any = None


def install(torch: Any) -> None:
    """Learns torch's types, and keeps places out of what the program saves."""
    global device, _cpu, _tensor, _is_meta, _stack_length, _stack_at
    _stack_length, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
    _is_meta = torch._C.TensorBase.is_meta.__get__
    device, _cpu, _tensor = torch.device, torch.device("cpu"), torch.Tensor
    get_state = torch._utils._get_obj_state

    def without_place(tensor: Any) -> Any:
        state = get_state(tensor)
        attributes = state[0] if isinstance(state, tuple) else state
        if isinstance(attributes, dict) and _TAG in attributes:
            attributes = {name: value for name, value in attributes.items() if name != _TAG}
            return (attributes, *state[1:]) if isinstance(state, tuple) else attributes
        return state

    torch._utils._get_obj_state = without_place
    # CUDA does not live on in a forked child, such as a loader's worker: what it computes is on the host.
    os.register_at_fork(after_in_child=_nothing_used)
