"""Gathers what the page of a finished run shows: the report, its patches, comparisons, profiles and traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import ValidationError

from agents.report.model import Change, CommitLine, Left, Report
from agents.runs import RunFolder
from agents.state import Verdict
from agents.toolkit.trace_program import TRACE
from agents.web import diffs, plots
from agents.web.diffs import Patch
from tools.errors import UserError
from tools.profiles.html import memory_plot, roofline
from tools.profiles.text import BASIS, text
from tools.trace import Section, TraceOutput, sections
from tools.verify import VerifyOutput
from torchtpu.proof.ratio import FLOAT32, LOW

_MOST_ROWS = 30


@dataclass(frozen=True)
class RuleCommit:
    """A commit with its patch and the findings that it put right; no patch where its tree is gone."""

    commit: CommitLine
    patch: Patch | None
    changes: list[Change]


@dataclass(frozen=True)
class LayerPlot:
    """Error ratios of one comparison."""

    stage: str
    comparison: str
    svg: Markup
    worst: list[tuple[str, str, bool]]


@dataclass(frozen=True)
class ProfilePart:
    """A profile of one entry."""

    number: str
    title: str
    summary: str
    basis: str
    roofline: Markup | None
    memory: Markup


@dataclass(frozen=True)
class TracePart:
    """The tables of one process of a trace."""

    title: str
    sections: list[Section]


@dataclass
class ReportPage:
    """Everything that the template asks for."""

    report: Report
    commits: list[RuleCommit]
    left: dict[str, list[Left]]
    plots: list[LayerPlot]
    comparisons: list[VerifyOutput]
    profiles: list[ProfilePart]
    traces: list[TracePart]
    losses: dict[int, Markup] = field(default_factory=dict)


def read_report(folder: RunFolder) -> Report:
    """A finished run's report.

    Raises:
        UserError: It cannot be read.
    """
    try:
        return Report.model_validate_json(folder.report_json.read_bytes())
    except (OSError, ValidationError) as error:
        raise UserError(f"The report of run {folder.id} cannot be read.", "Start a new migration.") from error


def gather(folder: RunFolder) -> ReportPage:
    """The page of a finished run."""
    report = read_report(folder)
    left: dict[str, list[Left]] = {}
    for one in report.left:
        left.setdefault(one.rule, []).append(one)
    return ReportPage(
        report=report,
        commits=[_commit(folder, commit, report) for commit in report.commits],
        left=left,
        plots=[plot for verdict in report.verdicts for plot in _layers(verdict)],
        comparisons=list(_comparisons(folder)),
        profiles=list(_profiles(folder.path)),
        traces=list(traces_of(folder.path)),
        losses={
            number: svg
            for number, run in enumerate(report.runs)
            if (svg := plots.losses(run.losses, f"loss of {run.entry}"))
        },
    )


def _commit(folder: RunFolder, commit: CommitLine, report: Report) -> RuleCommit:
    changes = [change for change in report.changes if change.commit == commit.sha]
    return RuleCommit(commit, diffs.of_commit(folder.tree, commit.sha), changes)


def _layers(verdict: Verdict) -> Iterator[LayerPlot]:
    for comparison, figures in verdict.figures.items():
        if not figures.by_name:
            continue
        limit = (FLOAT32 if comparison.startswith("float32") else LOW).limit
        ordered = sorted(figures.by_name.items(), key=lambda item: -float(item[1]))[:10]
        worst = [(name, f"{float(ratio):.3g}", float(ratio) > limit) for name, ratio in ordered]
        svg = plots.ratios(figures.by_name, limit, f"{verdict.stage}, {comparison}")
        yield LayerPlot(verdict.stage, comparison, svg, worst)


def _comparisons(folder: RunFolder) -> Iterator[VerifyOutput]:
    for path in sorted(folder.path.glob("verify/*/result.json")):
        try:
            yield VerifyOutput.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue  # the stages have said what came of it


def _profiles(folder: Path) -> Iterator[ProfilePart]:
    for path in sorted(folder.glob("profile/*/profile.json")):
        try:
            kept: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        profile = kept["profile"]
        yield ProfilePart(
            number=path.parent.name,
            title=f"{kept['command']} on {kept['target']}",
            summary=text(profile),
            basis=BASIS,
            # Both make their own markup, and escape what comes from the program.
            roofline=Markup(roofline(profile)) if profile["time"] else None,
            memory=Markup(memory_plot(profile)),
        )


def traces_of(folder: Path) -> Iterator[TracePart]:
    """The tables of a trace that was kept in a folder."""
    try:
        output = TraceOutput.model_validate_json((folder / TRACE).read_bytes())
    except (OSError, ValidationError):
        return
    for process in output.processes:
        rank = "" if process.rank is None else f", rank {process.rank}"
        title = f"process {process.pid}{rank}: {process.steps} steps on {process.device}, {process.seconds:.1f} s"
        found = [one for one in sections(process, output.fallbacks, _MOST_ROWS) if one[2]]
        yield TracePart(title, found)
