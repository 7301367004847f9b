"""Writes the page of the profiles' results."""

from __future__ import annotations

from typing import Any

from tools.profiles.text import seconds, size

_HEAD = """# Profiles for TPUs that are not there

Made by `python -m evals.profiles --publish`. Nothing here was measured on a TPU. Whether a step fits, and its
memory, is the account of Google's compiler. Step times are estimates by the model of `docs/profile.md`; the
lower end of the range takes every operator at its roofline, the upper end the compiler's window model as it is.
`quick`: the compiler was stopped before it generated code, so memory is settled and the time is without its cycles.
`whole / bare` is the time of the command by that of recording, lowering and the compiler's own call, where none of it
came from the cache; the second run takes all from it. The machine's two cores were shared with other work.
`tpu7x-2` is one chip, of which a program sees one of two cores: peak and memory are those of the core.

| model | target | fits | HBM | step, estimated | range | MFU | operations / arithmetic |\
 on a line | compile | its host memory |\
 whole / bare | second run |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def _row(record: dict[str, Any]) -> str:
    fits = {"ok": "yes", "out-of-memory": "no"}.get(record["outcome"], f"not known: {record['outcome']}")
    how = ", quick" if record["scheduled_only"] else ""
    shown = [record["model"], record["target"], f"{fits}{how}"]
    if record["outcome"] == "ok":
        recorded = record["recorded_flops"] / record["analytic_flops"]
        compiled = record["compiled_flops"] / record["analytic_flops"]
        shown += [
            f"{size(record['peak'])} of {size(record['limit'])}",
            seconds(record["seconds"]),
            f"{seconds(record['low'])} to {seconds(record['high'])}",
            f"{record['mfu']:.1%}",
            f"{recorded:.4f} recorded, {compiled:.4f} compiled",
            f"{record['to_user_lines']:.1%}"
            + (f", {record['inferred']:.0%} of it by what is around" if record.get("inferred") else ""),
        ]
    else:
        shown += [f"of {size(record['limit'])}", "-", "-", "-", "-", "-"]
    shown += [f"{record['compile_seconds']:.0f} s", size(record["host_memory"])]
    overhead, second = record.get("overhead"), record.get("second_run")
    shown += ["-" if overhead is None else f"{overhead:.2f}", "-" if second is None else f"{second:.1f} s"]
    return f"| {' | '.join(shown)} |"


def page(records: list[dict[str, Any]]) -> str:
    """The page."""
    rows = "\n".join(_row(record) for record in records)
    titles = {record["model"]: (record["title"], record["convention"], record["analytic_flops"]) for record in records}
    models = "\n".join(
        f"- `{name}`: {title}. {flops:.4g} operations by arithmetic: {convention}."
        for name, (title, convention, flops) in titles.items()
    )
    failures = "\n".join(
        f"- `{record['model']}` on {record['target']}: {' '.join(record['message'].split())[:300]}"
        for record in records
        if record["outcome"] != "ok"
    )
    newest = records[-1]
    versions = ", ".join(f"{name} {version}" for name, version in newest["versions"].items())
    tail = f"\n## What did not fit\n\n{failures}\n" if failures else ""
    return f"{_HEAD}{rows}\n\n{models}\n{tail}\n{newest['date']}, commit {newest['revision']}; {versions}.\n"
