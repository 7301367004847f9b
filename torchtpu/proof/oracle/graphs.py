"""What a CPU cannot stand in for: captured graphs and compiled CUDA code. Each use is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.inject import imports
from torchtpu.proof import wrapping

_NO_CAPTURE = "nothing is captured on a CPU, so that nothing can be replayed"
_NO_COMPILER = "the extension holds CUDA code"


def _compiling(call: str) -> Callable[[Any], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def load(*args: Any, **kwargs: Any) -> Any:
            sources = [
                str(s) for value in (*args, *kwargs.values()) for s in (value if isinstance(value, list) else [])
            ]
            if (
                kwargs.get("cuda_sources")
                or kwargs.get("with_cuda")
                or any(s.endswith((".cu", ".cuh")) for s in sources)
            ):
                wrapping.unimitated(call, _NO_COMPILER)
            return original(*args, **kwargs)

        return load

    return make


def _hook_extensions(module: Any) -> None:
    for name in ("load", "load_inline"):
        wrapping.over(module, name, _compiling(f"torch.utils.cpp_extension.{name}"))
    module.CUDAExtension = wrapping.refuse("torch.utils.cpp_extension.CUDAExtension", _NO_COMPILER)


def _as_they_are(callables: Any, *_args: Any, **_kwargs: Any) -> Any:
    # A graphed callable computes what the callable does.
    return callables


def install(torch: Any) -> None:
    """Replaces what captures, and watches what compiles."""
    cuda = torch.cuda
    for module in (cuda, cuda.graphs):
        module.CUDAGraph = wrapping.refuse_class("torch.cuda.CUDAGraph", _NO_CAPTURE)
        module.graph = wrapping.refuse_class("torch.cuda.graph", _NO_CAPTURE)
        module.make_graphed_callables = _as_they_are
        module.is_current_stream_capturing = lambda: False
        module.graph_pool_handle = lambda: (0, 0)
    imports.after_import("torch.utils.cpp_extension", _hook_extensions)
