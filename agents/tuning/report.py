"""Hands over what was kept and writes what was tried."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.delivery import deliver
from agents.nodes.report import tell_next
from agents.runs import write_whole
from agents.tuning.document import Document, make, render
from agents.tuning.state import TuneState
from agents.tuning.text import total
from tools import git


def report(state: TuneState, runtime: Runtime[Context]) -> dict[str, object]:
    """Deliver, write report.json and report.md, and tell what to do next."""
    context = runtime.context
    git.start_branch(context.folder.tree, state.branch, state.tip)
    delivery = deliver(state, context.folder)
    document: Document = make(state, delivery, context.folder)
    write_whole(context.folder.report_json, document.model_dump_json(indent=1))
    write_whole(context.folder.report, render(document))
    context.folder.update(status="finished", headline=document.headline, exit_code=document.exit_code)
    context.progress.done("total", total(state))
    if document.command != document.plain_command:
        context.progress.done("command", document.command)
    context.progress.done("report", str(context.folder.report))
    tell_next(delivery, context)
    return {"delivery": delivery}
