"""Boils a tensor down to a few numbers from which the distance of two tensors can still be told.

A tensor of up to ``WHOLE`` elements is kept whole. A larger one becomes a count sketch: its elements get
fixed signs and are added up in ``BUCKETS`` sums. For two tensors a and b the distance of their sketches
estimates |a - b| without bias, with a standard deviation of about 5 %. All sums are in float64, so that
the sketch itself does not round at the size of the float32 differences it is to show.
"""

from __future__ import annotations

import base64
import ctypes
import math
import weakref
import zlib
from typing import Any

import torch

WHOLE = 4096
BUCKETS = 256
_CHUNK = 1 << 16
_ROWS = _CHUNK // BUCKETS
_signs: torch.Tensor | None = None


def _hashed(numbers: torch.Tensor) -> torch.Tensor:
    # Not torch's generator: the program's own draws must not be disturbed, nor ours be taken for one of them.
    mixed = (numbers * 0x9E3779B1) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x85EBCA77) & 0xFFFFFFFF
    return mixed ^ (mixed >> 13)


def _chunk_signs() -> torch.Tensor:
    global _signs
    if _signs is None:
        positions = torch.arange(_CHUNK, dtype=torch.int64, device="cpu")
        _signs = (1 - 2 * (_hashed(positions) & 1)).to(torch.float64)
    return _signs


def _bucket_signs(chunk: int) -> torch.Tensor:
    # A sign for each bucket of each chunk keeps equal places of different chunks apart.
    positions = torch.arange(BUCKETS, dtype=torch.int64, device="cpu") + (chunk + 1) * 7919 * _CHUNK
    return (1 - 2 * ((_hashed(positions) >> 3) & 1)).to(torch.float64)


def _encoded(values: torch.Tensor) -> str:
    return base64.b64encode(_raw(values)).decode()


def _raw(values: torch.Tensor) -> bytes:
    # Without numpy, which the workload need not have.
    return ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())


def _checksum(values: torch.Tensor) -> int:
    size = values.numel() * values.element_size()
    return zlib.crc32((ctypes.c_char * size).from_address(values.data_ptr())) if size else 0


class _Sums:
    """Sums over the chunks of one tensor."""

    def __init__(self) -> None:
        self.buckets = torch.zeros(BUCKETS, dtype=torch.float64, device="cpu")
        self.square = self.total = 0.0
        self.low, self.high = math.inf, -math.inf
        self.zeros = self.odd = 0

    def add(self, number: int, chunk: torch.Tensor, sketched: bool) -> None:
        wide = chunk.to(torch.float64)
        total = float(wide.sum())
        if not math.isfinite(total):
            odd = ~torch.isfinite(wide)
            self.odd += int(odd.sum())
            wide = wide.masked_fill(odd, 0.0)
            total = float(wide.sum())
        low, high = torch.aminmax(wide)
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        self.total += total
        self.square += float(torch.linalg.vector_norm(wide)) ** 2
        self.zeros += wide.numel() - int(torch.count_nonzero(wide))
        if sketched:
            self._sketch(number, wide)

    def _sketch(self, number: int, wide: torch.Tensor) -> None:
        if wide.numel() < _CHUNK:
            wide = torch.nn.functional.pad(wide, (0, _CHUNK - wide.numel()))
        signed = (wide * _chunk_signs()).view(_ROWS, BUCKETS).sum(0)
        self.buckets += signed * _bucket_signs(number)


def on_host(tensor: torch.Tensor) -> torch.Tensor | None:
    """The values as a dense, contiguous CPU tensor of one dimension; None for what has no such form."""
    values = tensor.detach()
    if hasattr(values, "to_local"):
        values = values.to_local()
    if values.layout is not torch.strided or values.is_quantized or values.is_meta:
        return None
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    return values.to("cpu").contiguous().view(-1)


def sketch(tensor: torch.Tensor) -> dict[str, Any]:
    """The numbers of a tensor, as JSON values.

    Returns:
        ``shape``, ``dtype``, ``device`` and ``grad`` (whether it is part of a graph); ``crc`` of its bytes; for
        floating point ``norm``, ``mean``, ``low``, ``high``, ``zeros``, ``odd`` (values that are not finite, left out
        of all the others), and ``whole`` or ``sums``, the elements or the sketch as base64 of float64.
    """
    record: dict[str, Any] = {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
        "grad": bool(tensor.requires_grad),
    }
    with torch.no_grad():
        flat = on_host(tensor)
        if flat is None:
            return {**record, "skipped": str(tensor.layout)}
        record["crc"] = _checksum(flat)
        if flat.numel() and flat.is_floating_point():
            record |= _numbers(flat)
    return record


def checksum(tensor: torch.Tensor) -> str | None:
    """Shape, type and a checksum of the bytes of a tensor; None for what has no dense form."""
    with torch.no_grad():
        flat = on_host(tensor)
        return None if flat is None else f"{list(tensor.shape)} {tensor.dtype} {_checksum(flat)}"


def _numbers(flat: torch.Tensor) -> dict[str, Any]:
    sums, small = _Sums(), flat.numel() <= WHOLE
    for number, start in enumerate(range(0, flat.numel(), _CHUNK)):
        sums.add(number, flat[start : start + _CHUNK], sketched=not small)
    kept = {"whole": _encoded(flat.to(torch.float64))} if small else {"sums": _encoded(sums.buckets)}
    return {
        "norm": math.sqrt(sums.square),
        "mean": sums.total / flat.numel(),
        "low": sums.low,
        "high": sums.high,
        "zeros": sums.zeros,
        "odd": sums.odd,
        **kept,
    }


class Sketcher:
    """Sketches tensors, and says of one that was sketched before and has not changed which one it was."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self._count = 0

    def __call__(self, tensor: torch.Tensor) -> dict[str, Any]:
        """The sketch with its number, or only ``is``, the number of the earlier one."""
        version = None if tensor.is_inference() else tensor._version
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            return {"is": known[2]}
        self._count += 1
        if version is not None:
            self._known[id(tensor)] = (weakref.ref(tensor), version, self._count)
        return {"number": self._count, **sketch(tensor)}

    def forget(self) -> None:
        """Lets go of what it knows; called at each step, since most tensors are gone by then."""
        self._known.clear()
