"""How sums of bfloat16 are computed: `python -m evals.reductions [--publish]`.

The StableHLO that torch_tpu 0.2.0 emits for them is compiled ahead of time for each TPU generation, and the
instructions that the compiler ends with are counted; the same text is run on XLA's CPU client. No TPU is needed or
used, and nothing here was run on one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from evals import results

TARGETS = ("v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:1x1", "tpu7x:2x2x1")
ROWS = 512
_REDUCE = """module @m {{ func.func @main(%x: tensor<{rows}x96xbf16>) -> tensor<96xbf16> {{
  %c = stablehlo.constant dense<{start}> : tensor<bf16>
  %s = stablehlo.reduce(%x init: %c) applies stablehlo.{what} across dimensions = [0]
    : (tensor<{rows}x96xbf16>, tensor<bf16>) -> tensor<96xbf16>
  return %s : tensor<96xbf16> }} }}"""
_WINDOW = """module @m { func.func @main(%x: tensor<8x16x64x64xbf16>) -> tensor<8x16x8x8xbf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %s = "stablehlo.reduce_window"(%x, %c) ({ ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %r = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %r : tensor<bf16> })
    {window_dimensions = array<i64: 1, 1, 8, 8>, window_strides = array<i64: 1, 1, 8, 8>}
    : (tensor<8x16x64x64xbf16>, tensor<bf16>) -> tensor<8x16x8x8xbf16>
  return %s : tensor<8x16x8x8xbf16> } }"""
PROGRAMS = {
    "sum of 512": _REDUCE.format(rows=ROWS, start="0.0", what="add"),
    "sum of 65,536": _REDUCE.format(rows=65536, start="0.0", what="add"),
    "product of 512": _REDUCE.format(rows=ROWS, start="1.0", what="multiply"),
    "windows of 8 x 8": _WINDOW,
}
_ARITHMETIC = re.compile(r"\bv(?:add|mul)\.(?:8x128\.)?(f32|bf16)|\bv(unpack|pack)\.[.a-z0-9]*bf16")


def compile_for(target: str, text: str, dump: Path) -> Counter[str]:
    """The arithmetic of one program on one TPU: additions or products by type, conversions either way."""
    environment = {
        **os.environ, "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={dump} --xla_jf_dump_llo_text",
    }  # fmt: skip
    command = [sys.executable, "-m", "evals.reductions", "--compile", target]
    subprocess.run(command, input=text, env=environment, text=True, check=True, capture_output=True, timeout=600)
    counts: Counter[str] = Counter()
    for path in dump.glob("*-final_bundles.txt"):
        if re.search(r"reduce(-window)?\.\d+-\d+-final_bundles", path.name):
            for kind, conversion in _ARITHMETIC.findall(path.read_text()):
                counts[kind or conversion] += 1
    return counts


def _compile(target: str, text: str) -> None:
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir
    from jax.experimental import topologies

    devices = topologies.get_topology_desc(target, platform="tpu").devices[:1]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    with mlir.make_ir_context():
        devices[0].client.compile(ir.Module.parse(text), xla_client.DeviceList(tuple(devices)), options)


def on_cpu() -> dict[str, float]:
    """Relative error of the sum of 512 bfloat16 numbers, and of float32's sum rounded once."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    device = jax.devices("cpu")[0]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    with mlir.make_ir_context():
        program = device.client.compile_and_load(
            ir.Module.parse(PROGRAMS["sum of 512"]), xla_client.DeviceList((device,)), options
        )
    data = np.random.default_rng(0).standard_normal((ROWS, 96))
    given = jax.device_put(jnp.asarray(data, jnp.bfloat16), device)
    exact = np.asarray(given).astype(np.float64).sum(0)
    once = np.asarray(jnp.asarray(exact, jnp.bfloat16)).astype(np.float64)
    made = np.asarray(program.execute([given])[0]).astype(np.float64)
    shown = {"XLA's CPU client": made, "float32, rounded once": once}
    return {how: float(np.linalg.norm(sums - exact) / np.linalg.norm(exact)) for how, sums in shown.items()}


def _page(record: dict[str, Any]) -> str:
    lines = [
        "# Sums of bfloat16 numbers",
        "",
        f"Made {record['date']} at {record['revision']} by `python -m evals.reductions --publish`. torch_tpu 0.2.0"
        " lowers `sum`, `prod`, average pools and the gradients of biases to `stablehlo.reduce` and `reduce_window` of"
        " bfloat16. What follows is the arithmetic in the instructions that the TPU compiler (libtpu"
        f" {record['libtpu']}) ends with, compiled ahead of time; nothing was run on a TPU.",
        "",
        "| program | target | f32 arithmetic | bf16 arithmetic | unpack bf16 to f32 | pack f32 to bf16 |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {row['program']} | {row['target']} | {row.get('f32', 0)} | {row.get('bf16', 0)}"
            f" | {row.get('unpack', 0)} | {row.get('pack', 0)} |"
            for row in record["rows"]
        ),
        "",
        "So a TPU adds in float32 and rounds once, at the end (a windowed result is several vectors, each packed once)."
        " XLA's CPU client rounds after every addition. Relative error of the sum of 512, run there:",
        "",
        "| how | relative error |\n|---|---:|",
        *(f"| {name} | {value:.2g} |" for name, value in record["cpu"].items()),
        "",
        "The simulated device therefore computes these operators in float32 and rounds once"
        " (`torchtpu/simulator/substitutes/sums.py`).",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compile, count, run, print the page and publish it when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--compile", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile:
        _compile(arguments.compile, sys.stdin.read())
        return 0
    rows = []
    for name, text in PROGRAMS.items():
        for target in TARGETS:
            with tempfile.TemporaryDirectory() as folder:
                counts = compile_for(target, text, Path(folder))
            rows.append({"program": name, "target": target.partition(":")[0], **counts})
    found = results.versions(Path(sys.executable))
    record = {"date": results.today(), "revision": results.revision(), "versions": found, "libtpu": _libtpu()}
    record |= {"rows": rows, "cpu": on_cpu()}
    page = _page(record)
    print(page)
    if arguments.publish:
        results.publish("reductions", [record], page)
    return 0


def _libtpu() -> str:
    from importlib import metadata

    return metadata.version("libtpu")


if __name__ == "__main__":
    sys.exit(main())
