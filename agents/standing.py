"""How a private tree stands, from what was run and compared and not from what anybody says of it."""

from __future__ import annotations

from agents.stages.common import headline
from agents.stages.runs import runs
from agents.toolkit.bench import Bench
from tools.wording import amount


def standing(bench: Bench) -> str:
    """One line: commits, what the last run showed, and what the stages came to, each only as far as it was shown."""
    parts = [amount(len(bench.state.commits), "commit")]
    if bench.last_run is None:
        return f"{parts[0]}; runs: not run; forward: not run"
    if not bench.is_run_at_tip():
        return f"{parts[0]}; changed since the last run, so nothing is shown of it as it is now"
    verdict = runs(bench.state, bench.context)
    usual = bench.state.entries[0].command if bench.state.entries else ""
    of = f" (of '{bench.last_run.entry}', not of '{usual}')" if bench.last_run.entry != usual else ""
    parts.append(f"runs: {verdict.result}{of}")
    judged = bench.state.verdicts
    if judged and (bench.context.folder.path / "verified-tip").is_file():
        same = (bench.context.folder.path / "verified-tip").read_text() == bench.tip()
        if same:
            parts += [f"{v.stage}: {v.result}" for v in judged if v.stage not in ("runs", "parses", "clean")]
            return "; ".join([*parts, f"highest stage reached: {headline(judged)}"])
    return "; ".join([*parts, "forward: not run"])
