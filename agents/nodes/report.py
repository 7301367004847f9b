"""Hands the result over and writes the report."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.delivery import deliver
from agents.report.make import make
from agents.report.markdown import render
from agents.runs import write_whole
from agents.state import Delivery, State
from tools.wording import amount


def report(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Deliver, write report.json and report.md, and tell what to do next."""
    context = runtime.context
    delivery = deliver(state, context.folder)
    document = make(state, delivery, context.folder)
    write_whole(context.folder.report_json, document.model_dump_json(indent=1))
    write_whole(context.folder.report, render(document))
    context.folder.update(status="finished", headline=document.headline, exit_code=document.exit_code)
    if document.left:
        context.progress.done("left", f"{amount(len(document.left), 'place')} for you to look at; the report says why")
    context.progress.done("report", str(context.folder.report))
    tell_next(delivery, context)
    return {"delivery": delivery}


def tell_next(delivery: Delivery, context: Context) -> None:
    """The last lines: what the user was given and the commands to go on with."""
    if delivery.note:
        context.progress.done("result", delivery.note)
    if delivery.review:
        discard = f"   (or: {delivery.discard} to discard)" if delivery.discard else ""
        context.progress.done("next", f"{delivery.review}{discard}")
