"""Adjusts the PJRT function table of a CPU plugin so that torch_tpu's client creation succeeds."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Any, ClassVar

from torchtpu.simulator import flags

# Layout of PJRT_Api (xla/pjrt/c/pjrt_c_api.h): size, extension list, then the version struct
# (size, extension list, two ints), then function pointers in a fixed order.
_VERSION_OFFSET = 32
_TABLE_OFFSET = 40
_CLIENT_CREATE = 10
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_PROT_READ_WRITE = 1 | 2

_ERROR_FROM_ARGS = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _NamedValue(ctypes.Structure):
    _fields_: ClassVar[list[Any]] = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("value", ctypes.c_int64),
        ("value_size", ctypes.c_size_t),
    ]


class _CreateArgs(ctypes.Structure):
    _fields_: ClassVar[list[Any]] = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("options", ctypes.POINTER(_NamedValue)),
        ("num_options", ctypes.c_size_t),
    ]


_INT64_KIND = 1
# Callbacks and option arrays handed to native code must outlive it.
_kept: list[object] = []


def load_table(path: Path) -> int:
    """Loads a plugin and returns the address of its PJRT_Api.

    Raises:
        OSError: The file is no shared library for this machine, or has no GetPjrtApi.
    """
    library = ctypes.CDLL(str(path))
    try:
        get = library.GetPjrtApi
    except AttributeError as error:
        raise OSError(f"{path} is not a PJRT plugin: it exports no GetPjrtApi") from error
    get.restype = ctypes.c_void_p
    address = get()
    assert isinstance(address, int)
    return address


def api_version(table: int) -> tuple[int, int]:
    """Returns major and minor version of the PJRT API a plugin implements."""
    ints = (ctypes.c_int * 2).from_address(table + _VERSION_OFFSET)
    return ints[0], ints[1]


def _make_writable(address: int, size: int) -> None:
    page = address & ~(mmap.PAGESIZE - 1)
    length = address + size - page
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(length), _PROT_READ_WRITE):
        raise OSError(ctypes.get_errno(), "the plugin's function table cannot be made writable")


def overlay(target: int, source: int) -> None:
    """Makes one plugin's function table that of another, which torch_tpu already holds.

    `import torch` loads torch_tpu, and with it libtpu, before anybody can name another plugin.
    libtpu has not been started then: its table is only an array of pointers.

    Args:
        target: PJRT_Api torch_tpu holds.
        source: PJRT_Api to take over.
    """
    sizes = [ctypes.c_size_t.from_address(table).value for table in (target, source)]
    length = min(sizes)
    _make_writable(target, length)
    ctypes.memmove(target, source, length)
    # A caller reads only as many entries as the table says it has.
    ctypes.c_size_t.from_address(target).value = length


def _single_device_option() -> Any:
    name = b"cpu_device_count"
    options = (_NamedValue * 1)()
    options[0] = _NamedValue(ctypes.sizeof(_NamedValue), None, name, len(name), _INT64_KIND, 1, 1)
    return options


def patch_client_create(table: int) -> None:
    """Replaces the options torch_tpu passes to PJRT_Client_Create by one the CPU plugin knows.

    torch_tpu asks for ``premapped_buffer_size``, which only libtpu accepts; a CPU plugin answers
    an unknown option with an error. The callback runs once, on the thread that starts the backend.

    Args:
        table: Address of the plugin's PJRT_Api.
    """
    address = table + _TABLE_OFFSET + _POINTER * _CLIENT_CREATE
    slot = ctypes.c_void_p.from_address(address)
    assert slot.value is not None
    original = _ERROR_FROM_ARGS(slot.value)
    options = _single_device_option()

    def create(args: int) -> Any:
        # XLA parses its flags once, during this call; the program may have set them anew.
        flags.set_flags(os.environ)
        create_args = _CreateArgs.from_address(args)
        create_args.options = ctypes.cast(options, ctypes.POINTER(_NamedValue))
        create_args.num_options = 1
        return original(args)

    callback = _ERROR_FROM_ARGS(create)
    _kept.extend((callback, options, original))
    _make_writable(address, _POINTER)
    slot.value = ctypes.cast(callback, ctypes.c_void_p).value
