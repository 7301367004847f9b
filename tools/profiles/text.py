"""Writes a profile as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Profile = dict[str, Any]
GIB = 2**30
_LINES = 15
_BUFFERS = 10
_INNER = 8

BASIS = (
    "estimate, not measured: cycles of the compiler's window model, scaled, where it gives them; bytes over"
    " bandwidth and operations over peak where not"
)

_QUICK = (
    "estimate, not measured, and without the compiler's cycles (--quick): bytes over bandwidth and operations over a"
    " share of the peak"
)


def seconds(value: float) -> str:
    """A time with a fitting unit."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.1f} us"


def size(value: float) -> str:
    """Bytes with a fitting unit."""
    if value >= GIB / 10:
        return f"{value / GIB:.2f} GiB"
    return f"{value / 2**20:.1f} MiB" if value >= 2**20 / 10 else f"{value / 2**10:.1f} KiB"


def place(row: dict[str, Any]) -> str:
    """File and line of a row."""
    return f"{row['file']}:{row['line']}" if row.get("file") else row.get("op") or "made by the compiler"


def text(profile: Profile) -> str:
    """The profile in a screenful or two."""
    return "\n".join(
        [*head(profile), *_memory(profile), *(_time(profile) if profile["time"] else []), *_lines(profile),
         *_waste(profile), *_buffers(profile)]
    )  # fmt: skip


def head(profile: Profile) -> Iterator[str]:
    """Target and verdict."""
    target = profile["target"]
    of_slice = "" if target["devices"] == 1 else f", one device of {target['devices']}; the others are not used"
    yield f"target   {target['name']}: {target['generation']} {target['topology']}{of_slice}"
    step = profile["step"]
    phases = ", ".join(f"{count} {phase}" for phase, count in step["phases"].items())
    yield f"step     {step['operators']} operators ({phases}), {step['inputs']} inputs"
    for note in step.get("notes", []):
        yield f"         {note}"


def _memory(profile: Profile) -> Iterator[str]:
    memory = profile["memory"]
    limit = size(memory["limit"])
    if profile["outcome"] == "ok":
        parts = (("argument_bytes", "arguments"), ("temp_bytes", "temporaries"), ("code_bytes", "code"))
        detail = ", ".join(f"{name} {size(memory[key])}" for key, name in parts)
        yield f"fits     yes: {size(memory['peak'])} of {limit} HBM ({detail}), by the compiler's own account"
    elif profile["outcome"] == "out-of-memory":
        first = profile["message"].splitlines()[0] if profile["message"] else ""
        yield f"fits     no: {first[:300]}"
    else:
        yield f"fits     not known: the compilation ended with {profile['outcome']}. {profile['message'][:300]}"


def _time(profile: Profile) -> Iterator[str]:
    time, attribution = profile["time"], profile["attribution"]
    yield f"time     {seconds(time['seconds'])} a step, between {seconds(time['low'])} and {seconds(time['high'])}"
    yield f"         {_QUICK if profile['scheduled_only'] else BASIS};"
    yield "         lower end: every operator at its roofline; upper end: the window model as it is"
    flops = f"{time['model_flops']:.4g} operations in the program's matrix products"
    if abs(time["compiled_flops"] / max(time["model_flops"], 1.0) - 1) > 0.005:
        flops += f", {time['compiled_flops']:.4g} in the compiled one"
    if time["mfu"] is not None:
        low, high = time["mfu_low"], time["mfu_high"]
        peak = f"{time['peak_flops'] / 1e12:.0f} TFLOP/s"
        yield f"MFU      {time['mfu']:.1%} of {peak} ({low:.1%} to {high:.1%}); {flops}"
    total = sum(time["bound"].values()) or 1.0
    bound = sorted(time["bound"].items(), key=lambda item: -item[1])
    yield "bound    " + ", ".join(f"{kind} {share / total:.0%}" for kind, share in bound if share / total >= 0.005)
    yield (
        f"sources  {attribution['to_user_lines']:.1%} of the time on a line of the program,"
        f" {attribution['to_operators']:.1%} on a PyTorch operator; {attribution['inferred']:.1%} by what is around"
    )


def _lines(profile: Profile) -> Iterator[str]:
    if not profile["lines"]:
        return
    total = sum(row["seconds"] for row in profile["lines"]) or 1.0
    yield ""
    yield f"{'time':>10} {'share':>6} {'bound':<9} {'backward':>8}  line"
    for row in profile["lines"][:_LINES]:
        backward = row["phases"].get("backward", 0.0) / (row["seconds"] or 1.0)
        operators = ", ".join(name.split(".")[1] for name in row["ops"])
        share = row["seconds"] / total
        yield (
            f"{seconds(row['seconds']):>10} {share:>6.1%} {row['bound']:<9} {backward:>8.0%}  {place(row)}  {operators}"
        )
        for inner in row["inner"][:_INNER]:
            yield f"{seconds(inner['seconds']):>10} {inner['seconds'] / total:>6.1%} {'':<20} in {inner['place']}"


def _waste(profile: Profile) -> Iterator[str]:
    waste = profile["waste"]
    if not waste:
        return
    yield ""
    moved = profile["time"]["bytes"] or 1.0
    yield f"padding  {size(waste['padding_bytes'])} of {size(moved)} moved are padding of tiles"
    yield f"copies   {waste['layout_copies']} changes of layout, {seconds(waste['layout_copy_seconds'])}"
    if waste["upcasts"]:
        shown = ", ".join(f"{row['file']}:{row['line']} {size(row['bytes'])}" for row in waste["upcasts"][:3])
        yield f"upcasts  to 32 bits and more: {shown}"
    reads = waste["host_reads"]
    if reads:
        places = sorted({f"{row['file']}:{row['line']}" for row in reads})
        yield f"host     waits for the device in the step: {', '.join(places[:5])}"


def _buffers(profile: Profile) -> Iterator[str]:
    largest = profile["memory"]["largest"]
    if not largest:
        return
    yield ""
    yield "largest buffers at the peak of the schedule, followed by us (arguments left out)"
    for row in largest[:_BUFFERS]:
        operator = (row["op"] or "").removeprefix("aten.").removesuffix(".default")
        within = f" in {row['library']}" if row.get("library") else ""
        yield f"{size(row['bytes']):>10}  {row['shape']:<28} {place(row)}{within}  {operator}"
