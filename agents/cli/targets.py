"""`torchtpu-agent targets`: the TPUs a profile can be for, and what they can do at most."""

from __future__ import annotations

from typing import Annotated

import typer

from agents.cli import options
from agents.cli.common import guarded
from agents.cli.output import echo, print_json
from tools.errors import Exit

_NAME = "A slice such as v6e-8, v5p-8 (TensorCores) or v6e:2x4; without one, all generations."
GIB = 2**30


@guarded
def targets(
    name: Annotated[str | None, typer.Argument(help=_NAME, metavar="[TARGET]")] = None,
    json_output: options.Json = False,
) -> Exit | None:
    """List TPU generations, or show one slice: peak, memory, bandwidths, each with its public source.

    For example:

        torchtpu-agent targets

        torchtpu-agent targets v6e-8 --json
    """
    from tools import profile
    from torchtpu.targets import describe

    found = [describe(profile.target_named(name))] if name else profile.targets()
    if json_output:
        print_json(found)
        return None
    head = f"{'target':<10} {'chips':>5} {'devices':>7} {'bf16':>12} {'int8':>12} {'HBM':>8} {'bandwidth':>10} "
    echo(head + f"{'ICI':>9} {'clock':>9} {'MXU':>8}   a chip")
    for one in found:
        int8 = f"{one['peak']['int8']['value'] / 1e12:.0f} Tops/s" if "int8" in one["peak"] else "-"
        echo(
            f"{one['name']:<10} {one['chips']:>5} {one['devices']:>7}"
            f" {one['peak']['bfloat16']['value'] / 1e12:>6.0f} Tops/s"
            f" {int8:>12}"
            f" {one['hbm_bytes']['value'] / GIB:>4.0f} GiB {one['hbm_bandwidth']['value'] / 1e9:>5.0f} GB/s"
            f" {one['ici_bandwidth']['value'] / 1e9:>4.0f} GB/s {one['clock']['value'] / 1e9:>5.2f} GHz"
            f" {one['mxu']:>3}x{one['mxu']}"
        )
    echo("")
    for one in found:
        figures = [(f"peak {kind}", figure) for kind, figure in one["peak"].items()]
        figures += [(key, one[key]) for key in ("hbm_bytes", "hbm_bandwidth", "ici_bandwidth", "clock", "vmem_bytes")]
        by_source: dict[str, list[str]] = {}
        for label, figure in figures:
            by_source.setdefault(figure["source"], []).append(label)
        for source, labels in by_source.items():
            echo(f"{one['generation']:<6} {', '.join(labels)}: {source}")
    return None
