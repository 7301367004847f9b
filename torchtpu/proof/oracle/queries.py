"""What ``torch.cuda`` answers: one device of compute capability 8.0, never out of memory."""

from __future__ import annotations

import collections
import contextlib
import os
import resource
import types
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement

NAME = "CUDA alias of the CPU"
CAPABILITY = (8, 0)
CUDA_VERSION = "12.8"


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _properties(_device: Any = None) -> Any:
    return types.SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=_total_memory(),
        multi_processor_count=108,
        max_threads_per_multi_processor=2048,
        warp_size=32,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=166912,
        regs_per_multiprocessor=65536,
        L2_cache_size=41943040,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )


def _used_memory(_device: Any = None) -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _set_device(device: Any) -> None:
    place = placement.read(device)
    if place is not None and place >= 0:
        placement.state.current = place


class _OnDevice(contextlib.ContextDecorator):
    """Makes a device the current one."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __enter__(self) -> None:
        self.outer = placement.state.current
        _set_device(self.device)

    def __exit__(self, *_details: Any) -> None:
        placement.state.current = self.outer


class _DeviceOf(_OnDevice):
    """Makes the device of a tensor the current one."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(placement.of(tensor) if isinstance(tensor, placement._tensor) else None)


def _share_memory_answers(torch: Any) -> None:
    """A migrated program asks ``torch.accelerator`` what the original asks ``torch.cuda``."""
    names = ["memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats"]
    names += ["max_memory_allocated", "max_memory_reserved", "reset_accumulated_memory_stats", "empty_cache"]
    for name in names:
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, getattr(torch.cuda, name))
    torch.accelerator.get_memory_info = torch.cuda.mem_get_info


def install(torch: Any) -> None:
    """Replaces the functions of torch.cuda that ask or name the device."""
    cuda = torch.cuda
    wrapping.answer(
        cuda,
        {
            "is_available": True,
            "is_initialized": True,
            "init": None,
            "_lazy_init": None,
            "synchronize": None,
            "empty_cache": None,
            "ipc_collect": None,
            "get_device_name": NAME,
            "get_device_capability": CAPABILITY,
            "get_arch_list": ["sm_80"],
            "get_gencode_flags": "",
            "is_bf16_supported": True,
            "is_tf32_supported": True,
            "can_device_access_peer": True,
            "utilization": 0,
            "memory_usage": 0,
            "temperature": 0,
            "power_draw": 0,
            "clock_rate": 0,
            "_is_in_bad_fork": False,
            "_check_capability": None,
            "set_sync_debug_mode": None,
            "get_sync_debug_mode": 0,
            "is_current_stream_capturing": False,
            "set_per_process_memory_fraction": None,
            "memory_summary": "",
            "memory_snapshot": [],
            "list_gpu_processes": "",
        },
    )
    for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"):
        wrapping.answer(cuda, {name: None})
    wrapping.answer(cuda, {"reset_accumulated_memory_stats": None, "caching_allocator_delete": None})
    for name in ("memory_allocated", "memory_reserved", "memory_cached"):
        setattr(cuda, name, _used_memory)
        setattr(cuda, f"max_{name}", _used_memory)
    cuda.memory_stats = lambda device=None: collections.defaultdict(int)  # noqa: ARG005  torch's signature
    cuda.mem_get_info = lambda device=None: (_total_memory() // 2, _total_memory())  # noqa: ARG005
    _share_memory_answers(torch)
    cuda.device_count = placement.device_count
    cuda.get_device_properties = _properties
    cuda.current_device = lambda: placement.state.current
    cuda.set_device = _set_device
    cuda.device, cuda.device_of = _OnDevice, _DeviceOf
    torch.version.cuda = torch.version.cuda or CUDA_VERSION
    wrapping.answer(torch.backends.cudnn, {"is_available": True, "version": 90000, "is_acceptable": True})
    wrapping.answer(torch.backends.cuda, {"is_built": True})
