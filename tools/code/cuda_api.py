"""What becomes of every public name of ``torch.cuda``: the decision, the rule that carries it out, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a migration does with a use of the name.

    ``REWRITTEN`` becomes something that works on any accelerator, ``GUARDED`` runs on CUDA only, ``HARMLESS`` works or
    does nothing without CUDA and stays, ``ADVICE`` needs a person.
    """

    REWRITTEN = "rewritten"
    GUARDED = "guarded"
    HARMLESS = "harmless"
    ADVICE = "advice"


@dataclass(frozen=True)
class Decision:
    """The decision about one name.

    Attributes:
        kind: what is done.
        rule: the rule that does it, empty for harmless names.
        note: the reason, or what a person should do.
    """

    kind: Kind
    rule: str
    note: str


def _each(kind: Kind, rule: str, note: str, names: str) -> dict[str, Decision]:
    return dict.fromkeys(names.split(), Decision(kind, rule, note))


_GRAPH = "CUDA graphs have no counterpart; torch.compile, or TorchTPU's fused eager mode, removes the same overhead"
_POOL = "custom CUDA memory pools and allocators have no counterpart; leave the branch to CUDA"
_NVML = "reads NVIDIA's management library; on a TPU use the monitoring of the TPU runtime, or leave the value out"
_HANDLE = "a handle of CUDA's own libraries; whatever takes it is CUDA code and needs a branch of its own"
_NCCL = "calls NCCL directly; use torch.distributed, whose backend fits the device"
_PROPERTIES = (
    "other accelerators have no such properties (SM count, warp size, compute capability); "
    "branch on torch.cuda.is_available() and say what holds elsewhere"
)
_SNAPSHOT = "the CUDA allocator's own records; keep them behind torch.cuda.is_available()"

# fmt: off
API: dict[str, Decision] = {
    # --- which device -------------------------------------------------------------------------------------------
    **_each(Kind.REWRITTEN, "TPU102", "a test that decides placement asks torch.accelerator", "is_available"),
    **_each(Kind.REWRITTEN, "TPU202", "torch.accelerator counts any device", "device_count"),
    **_each(Kind.REWRITTEN, "TPU203", "torch.accelerator has the index of any device", "current_device"),
    **_each(Kind.REWRITTEN, "TPU204", "elsewhere the accelerator's type is its name", "get_device_name"),
    **_each(Kind.GUARDED, "TPU201", "one process has one TPU, so there is nothing to select", "set_device"),
    **_each(Kind.GUARDED, "TPU210", "a context without effect elsewhere", "device"),
    **_each(Kind.HARMLESS, "", "does nothing for a tensor that is not on CUDA", "device_of"),
    **_each(Kind.ADVICE, "TPU219", _PROPERTIES, "get_device_properties get_device_capability can_device_access_peer"),
    **_each(Kind.HARMLESS, "", "empty or false without CUDA", "get_arch_list get_gencode_flags is_initialized "
            "is_tf32_supported has_half has_magma"),
    **_each(Kind.REWRITTEN, "TPU205", "false without CUDA although a TPU computes in bfloat16", "is_bf16_supported"),
    # --- time and order ------------------------------------------------------------------------------------------
    **_each(Kind.REWRITTEN, "TPU206", "torch.accelerator waits for any device", "synchronize"),
    **_each(Kind.GUARDED, "TPU208", "one queue a device elsewhere, so order holds without streams",
            "Stream current_stream default_stream stream set_stream StreamContext ExternalStream "
            "get_stream_from_external"),
    **_each(Kind.REWRITTEN, "TPU209", "torch.Event is the same for any device", "Event"),
    **_each(Kind.GUARDED, "TPU201", "settings of the CUDA runtime", "init ipc_collect set_sync_debug_mode "
            "set_per_process_memory_fraction check_error"),
    **_each(Kind.ADVICE, "TPU214", _HANDLE, "cudart current_blas_handle current_solver_handle get_sync_debug_mode "
            "get_per_process_memory_fraction get_allocator_backend"),
    **_each(Kind.ADVICE, "TPU214", _GRAPH, "CUDAGraph graph graph_pool_handle make_graphed_callables "
            "is_current_stream_capturing"),
    # --- memory --------------------------------------------------------------------------------------------------
    **_each(Kind.HARMLESS, "", "does nothing without CUDA; torch.accelerator.empty_cache fails on some devices",
            "empty_cache"),
    **_each(Kind.REWRITTEN, "TPU207", "0 without CUDA, which is no measurement; torch.accelerator measures any device",
            "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached "
            "reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached mem_get_info"),
    **_each(Kind.GUARDED, "TPU201", "counters of the CUDA allocator", "reset_accumulated_memory_stats "
            "reset_peak_host_memory_stats reset_accumulated_host_memory_stats caching_allocator_enable "
            "caching_allocator_delete change_current_allocator"),
    **_each(Kind.ADVICE, "TPU214", _SNAPSHOT, "memory_stats memory_stats_as_nested_dict memory_summary memory_snapshot "
            "host_memory_stats host_memory_stats_as_nested_dict"),
    **_each(Kind.ADVICE, "TPU214", _POOL, "MemPool use_mem_pool CUDAPluggableAllocator caching_allocator_alloc "
            "caching_allocator_disabled GreenContext green_contexts gds"),
    **_each(Kind.ADVICE, "TPU214", _NVML, "utilization temperature power_draw clock_rate memory_usage "
            "device_memory_used list_gpu_processes"),
    **_each(Kind.ADVICE, "TPU217", "a TPU that is full may raise RuntimeError with RESOURCE_EXHAUSTED instead",
            "OutOfMemoryError"),
    # --- random numbers --------------------------------------------------------------------------------------------
    **_each(Kind.HARMLESS, "TPU922", "does nothing without CUDA; torch.manual_seed seeds every device",
            "manual_seed manual_seed_all seed seed_all"),
    **_each(Kind.REWRITTEN, "TPU213", "torch.initial_seed is the same number", "initial_seed"),
    **_each(Kind.GUARDED, "TPU213", "the state of CUDA's generators", "get_rng_state get_rng_state_all set_rng_state "
            "set_rng_state_all"),
    **_each(Kind.ADVICE, "TPU214", "empty without CUDA; seed with torch.manual_seed", "default_generators"),
    # --- types -----------------------------------------------------------------------------------------------------
    **_each(Kind.REWRITTEN, "TPU105", "a tensor of this type on the resolved device", "FloatTensor DoubleTensor "
            "HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor"),
    **_each(Kind.ADVICE, "TPU214", "storages of CUDA memory; use tensors", "FloatStorage DoubleStorage HalfStorage "
            "BFloat16Storage LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
            "ComplexFloatStorage ComplexDoubleStorage"),
    **_each(Kind.HARMLESS, "", "a type that is only named, in annotations and except clauses",
            "CudaError DeferredCudaCallError AcceleratorError cudaStatus Device"),
    # --- packages below torch.cuda ---------------------------------------------------------------------------------
    **_each(Kind.REWRITTEN, "TPU301", "torch.amp takes the device type", "amp"),
    **_each(Kind.HARMLESS, "", "importing the package works without CUDA; what is called in it has rules of its own",
            "graphs jiterator memory nccl nvtx profiler random sparse streams tunable"),
    **_each(Kind.REWRITTEN, "TPU211", "torch.profiler.record_function marks a range on any device", "nvtx.range"),
    **_each(Kind.GUARDED, "TPU201", "marks for NVIDIA's profiler", "nvtx.range_push nvtx.range_pop nvtx.range_end "
            "nvtx.mark profiler.start profiler.stop"),
    **_each(Kind.GUARDED, "TPU211", "marks for NVIDIA's profiler", "nvtx.range_start profiler.profile"),
    **_each(Kind.GUARDED, "TPU201", _SNAPSHOT, "memory._record_memory_history memory._dump_snapshot "
            "memory._set_allocator_settings tunable.enable tunable.tuning_enable tunable.set_filename"),
    **_each(Kind.ADVICE, "TPU214", _NCCL, "nccl.all_reduce nccl.reduce nccl.broadcast nccl.all_gather "
            "nccl.reduce_scatter nccl.version nccl.unique_id nccl.init_rank"),
    **_each(Kind.HARMLESS, "", "false without CUDA", "nccl.is_available"),
    **_each(Kind.ADVICE, "TPU214", "compiles CUDA source; write the function in PyTorch or as a Pallas kernel",
            "jiterator._create_jit_fn jiterator._create_multi_output_jit_fn"),
    **_each(Kind.ADVICE, "TPU214", _SNAPSHOT, "memory._snapshot"),
}
# fmt: on
"""Decisions by name below ``torch.cuda``."""

HOMES = ("memory", "random", "streams", "graphs")
"""Packages whose public names are the same objects as those of ``torch.cuda`` itself."""


def canonical(dotted: str) -> str | None:
    """The key in ``API`` for a name such as ``torch.cuda.memory.empty_cache``, None if it is not of torch.cuda."""
    if not dotted.startswith("torch.cuda."):
        return None
    name = dotted[len("torch.cuda.") :]
    if name in API:
        return name
    home, _, rest = name.partition(".")
    return rest if home in HOMES and rest in API else None


def handled_by(rule: str) -> frozenset[str]:
    """The names a rule takes care of."""
    return frozenset(name for name, decision in API.items() if decision.rule == rule)
