"""The child of a compilation: ``python -m torchtpu.compiler_child SPEC...`` compiles for one device of a topology."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

_KINDS = {"argument": "argument_size", "output": "output_size", "alias": "alias_size", "temp": "temp_size"}


def _donate(module: Any, donated: dict[str, int], ir: Any) -> None:
    """Marks the arguments whose buffers results may take."""
    main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
    count = len(main.arguments)
    attributes = main.attributes
    have = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else [ir.DictAttr.get({})] * count
    number = ir.IntegerType.get_signless(32)
    for position, result in donated.items():
        entries = {entry.name: entry.attr for entry in ir.DictAttr(have[int(position)])}
        # TorchTPU offers some buffers, those of a fused optimizer, to whatever result wants them.
        entries.pop("jax.buffer_donor", None)
        entries["tf.aliasing_output"] = ir.IntegerAttr.get(number, result)
        have[int(position)] = ir.DictAttr.get(entries)
    attributes["arg_attrs"] = ir.ArrayAttr.get(have)


def _compile(spec: dict[str, Any]) -> Any:
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client  # type: ignore[attr-defined]
    from jax._src.lib.mlir import ir  # type: ignore[attr-defined]
    from jax.experimental import topologies

    device: Any = topologies.get_topology_desc(spec["topology"], platform="tpu").devices[0]
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=1,
        device_assignment=np.array([[device.id]]),
        env_options_overrides=spec["options"],
    )
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(Path(spec["program"]).read_text())
        _donate(module, spec["donated"], ir)
        return device.client.compile(module, xla_client.DeviceList((device,)), options)


def _memory(executable: Any) -> dict[str, int]:
    stats = executable.get_compiled_memory_stats()
    found = {kind: int(getattr(stats, f"{name}_in_bytes")) for kind, name in _KINDS.items()}
    return found | {"code": int(stats.generated_code_size_in_bytes)}


def _write_hlo(executable: Any, path: Path) -> None:
    try:
        path.write_text(executable.hlo_modules()[0].to_string())
    except Exception as error:  # noqa: BLE001  jaxlib may be too old for what the compiler made; its dump is read then
        sys.stderr.write(f"the program cannot be read back: {error}\n")


def main(path: str) -> None:
    """Compiles and writes the answer; an error of the compiler is an answer too."""
    spec = json.loads(Path(path).read_text())
    answer: dict[str, Any] = {"outcome": "ok", "message": "", "memory": {}}
    began = time.monotonic()
    try:
        executable = _compile(spec)
        answer["seconds"] = time.monotonic() - began
        answer["memory"] = _memory(executable)
        _write_hlo(executable, Path(spec["hlo"]))
    except Exception as error:  # noqa: BLE001  whatever the compiler says is what the parent has to tell
        answer.setdefault("seconds", time.monotonic() - began)
        answer["message"] = str(error)[:4000]
        answer["outcome"] = "out-of-memory" if "Oom" in str(error) and "Hbm" in str(error) else "failed"
    answer["host_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    Path(spec["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
