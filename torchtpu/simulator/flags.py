"""XLA flags the CPU plugin needs in place of what a TPU's compiler does by itself."""

from __future__ import annotations

from collections.abc import MutableMapping

VARIABLE = "XLA_FLAGS"
_DISABLE = "--xla_disable_hlo_passes="

# torch_tpu lowers cumsum and its kin, masked_scatter, masked indexing and associative_scan to
# `chlo.scan`. XLA:CPU rewrites it to a form its own fusion emitter aborts on
# (computation_partitioner.cc:269). Without the rewrite the scan expands to a loop, which runs.
_PASSES = ("associative-scan-rewriter",)


def merged(flags: str) -> str:
    """Adds what the plugin needs to the user's XLA flags, which stay as they are.

    Args:
        flags: Value of XLA_FLAGS, may be empty.

    Returns:
        The value to set; merging twice gives the same text.
    """
    words = flags.split()
    passes: list[str] = []
    for word in words:
        if word.startswith(_DISABLE):
            passes += [name for name in word.removeprefix(_DISABLE).split(",") if name]
    passes += [name for name in _PASSES if name not in passes]
    kept = [word for word in words if not word.startswith(_DISABLE)]
    return " ".join([*kept, _DISABLE + ",".join(passes)])


def set_flags(environ: MutableMapping[str, str]) -> None:
    """Sets XLA_FLAGS for a process that will start the CPU plugin."""
    environ[VARIABLE] = merged(environ.get(VARIABLE, ""))
