"""Renders templates: everything in them is escaped, and every form carries the word against forged ones."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

HERE = Path(__file__).resolve().parent


@functools.cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(HERE / "templates")
    made = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["duration"] = duration
    made.filters["short"] = lambda text, most=120: text if len(text) <= most else f"{text[: most - 1]}…"
    return made


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page.

    Args:
        request: What it answers.
        template: File in `templates`.
        status: Of the answer.
        values: What the template asks for.
    """
    settings = request.app.state.settings
    common = {
        "csrf": request.state.csrf,
        "path": request.url.path,
        "wants_sign_in": settings.wants_sign_in,
        "is_in": request.state.visitor.signed_in or not settings.wants_sign_in,
    }
    return HTMLResponse(_environment().get_template(template).render(**common, **values), status)


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
