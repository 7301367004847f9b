"""The page of tuning results."""

from __future__ import annotations

from typing import Any

from tools.profiles.text import seconds

_HEAD = """# Tuning for a TPU that is not there

Made by `python -m evals.tuning --publish`. **Everything here is an estimate**, by Google's compiler and the model of
`docs/profile.md`; nothing was measured on a TPU. The plain migration is what the rules make of the program, taken as
it launches its step: without `torch.compile` a program for every operator. The time of launches is in no figure.
"One program" is the whole step as one, which no program that launches several can be sure of. The batch is the same
throughout. `quick`: without the compiler's cycles, on both sides. JAX: the same model in plain JAX, with XLA's
attention and with the Pallas kernel that jax brings along; the last column takes the faster.

"""
_HEADS = ("program", "target", "plain", "launches", "tuned", "launches", "times less", "one program")
_HEADS += ("plain JAX", "JAX, flash", "tuned / JAX")


def page(records: list[dict[str, Any]]) -> str:
    """The page."""
    rows = "\n".join(_row(record) for record in records)
    details = "\n\n".join(_details(record) for record in records)
    newest = records[-1]
    versions = ", ".join(f"{name} {version}" for name, version in newest["versions"].items())
    table = f"| {' | '.join(_HEADS)} |\n|{'---|' * len(_HEADS)}\n"
    return f"{_HEAD}{table}{rows}\n\n{details}\n\n{newest['date']}, commit {newest['revision']}; {versions}.\n"


def ratio(record: dict[str, Any]) -> float | None:
    """Tuned step by the faster of the two in JAX."""
    known = [one["seconds"] for one in record["jax"].values() if one["seconds"]]
    best = (record["best"] or {}).get("seconds")
    return best / min(known) if best and known else None


def _time(one: dict[str, Any] | None) -> str:
    return seconds(one["seconds"]) if one and one["seconds"] else "-"


def _row(record: dict[str, Any]) -> str:
    plain, best, found = record["plain"], record["best"], ratio(record)
    cells = [f"`{record['name']}`", record["target"] + (", quick" if record["quick"] else "")]
    for one in (plain, best):
        cells += [_time(one), str(one["launches"]) if one else "-"]
    cells += [f"{record['speedup']:.2f}" if record["speedup"] else "-", _time(record["whole"])]
    cells += [_time(record["jax"].get("plain")), _time(record["jax"].get("flash"))]
    return f"| {' | '.join([*cells, f'{found:.3f}' if found else '-'])} |"


def _details(record: dict[str, Any]) -> str:
    lines = [f"## {record['name']}", "", f"{record['title']}. `{record['entry']}`", ""]
    lines += ["| tried | before | after | launches | verdict | why or what was compared |", "|---|---|---|---|---|---|"]
    for trial in record["trials"] or []:
        before, after = trial["before"], trial["after"]
        launches = f"{before['launches']} -> {after['launches']}" if before and after else "-"
        why = trial["reason"] or "; ".join(trial["verified"][:4])
        cells = [f"`{trial['transform']}`", _time(before), _time(after), launches, trial["verdict"], why]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    ranges = [
        f"{name} {seconds(one['low'])} to {seconds(one['high'])}"
        for name, one in (("plain", record["plain"]), ("tuned", record["best"]))
        if one and one["low"]
    ]
    lines += ["", f"Ranges, from the roofline to the window model as it is: {', '.join(ranges)}."]
    failed = [f"{name}: {one['message']}" for name, one in record["jax"].items() if one["outcome"] != "ok"]
    return "\n".join([*lines, *(["", f"In JAX: {'; '.join(failed)}"] if failed else [])])
