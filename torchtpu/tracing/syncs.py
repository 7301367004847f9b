"""Which operators make the host wait for the device, and which give results whose shape depends on data."""

from __future__ import annotations

from typing import Any

SIZE = "a result whose size depends on data"
_VALUE = "a value read by the host (item, float, int, or a condition on a tensor)"
_COPY = "a copy to the host"
_EQUAL = "a comparison of two tensors by the host"
_SIZED = {
    "nonzero", "masked_select", "unique_dim", "_unique2", "_unique", "unique_consecutive", "unique_dim_consecutive",
    "argwhere", "nonzero_numpy",
}  # fmt: skip


def sized_by_data(name: str, tensors: list[Any]) -> bool:
    """Whether the shape of a result is known only after the operator has run.

    Args:
        name: Of the operator, such as ``nonzero``.
        tensors: The arguments that are tensors.
    """
    if name in ("index", "index_put", "_index_put_impl", "_unsafe_index"):
        # The first tensor is the one indexed; writing through a mask keeps its shape.
        masks = any(str(one.dtype) in ("torch.bool", "torch.uint8") for one in tensors[1:])
        return name in ("index", "_unsafe_index") and masks
    return name in _SIZED or (name == "repeat_interleave" and len(tensors) == 1)


def kind(name: str, tensors: list[Any], made: Any, device: str) -> str | None:
    """How an operator makes the host wait for the device; None when it does not, as on a CPU."""
    if device == "cpu" or not any(one.device.type == device for one in tensors):
        return None
    if name == "_local_scalar_dense":
        return _VALUE
    if name == "equal":
        return _EQUAL
    if name in ("_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"):
        target = made if name == "_to_copy" else tensors[0]
        return _COPY if getattr(getattr(target, "device", None), "type", device) == "cpu" else None
    return SIZE if sized_by_data(name, tensors) else None
