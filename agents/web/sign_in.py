"""Signing in with the token, and out again."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from agents.web.guard import set_cookie
from agents.web.pages import page
from agents.web.visitors import Visitors

router = APIRouter(include_in_schema=False)
_INSIDE = re.compile(r"/(?:(?:runs|chats)(?:/[\w.-]+)*)?")


@router.get("/sign-in")
def form(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """The form for the token."""
    if not request.app.state.settings.wants_sign_in:
        return RedirectResponse("/", 303)
    return page(request, "sign_in.html", next=_inside(next), problem="")


@router.post("/sign-in")
def sign_in(
    request: Request,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Check the token; whoever has it gets a cookie that nobody had before."""
    visitors: Visitors = request.app.state.visitors
    if not visitors.may_try():
        return page(request, "sign_in.html", 429, next=_inside(next), problem="Too many wrong tokens. Wait a minute.")
    if not visitors.is_token(token.strip()):
        visitors.failed()
        return page(request, "sign_in.html", 401, next=_inside(next), problem="That is not the token.")
    visitors.end(request.state.visitor)
    answer = RedirectResponse(_inside(next), 303)
    answer.headers["set-cookie"] = set_cookie(visitors, visitors.new(signed_in=True), request.scope)
    return answer


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """End the sign-in, also for copies of the cookie."""
    visitors: Visitors = request.app.state.visitors
    visitors.end(request.state.visitor)
    return RedirectResponse("/sign-in", 303)


def _inside(path: str) -> str:
    """Where to go on, which is always a page of ours."""
    return path if _INSIDE.fullmatch(path) else "/"
