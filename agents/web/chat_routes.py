"""Pages of chats: the list, the form that begins one, and the conversation itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, ValidationError

from agents import sessions
from agents.commands import WORDS
from agents.exporting import exported
from agents.modes import Mode
from agents.web import report, starting, stream
from agents.web.chats import Chats, OpenChat
from agents.web.pages import page
from tools.errors import UserError

router = APIRouter(include_in_schema=False)
_LONGEST = 400_000
_BETWEEN = 0.15


class Said(BaseModel):
    """What a person typed or pasted."""

    text: str = Field(max_length=_LONGEST)


class Answer(BaseModel):
    """The answer to a question of the chat."""

    yes: bool


class Opening(BaseModel):
    """How a chat is gone on with."""

    mode: Mode = Mode.ASK
    model: str | None = Field(default=None, max_length=200)


@router.get("/chats")
def list_chats(request: Request) -> HTMLResponse:
    """The list of chats, and the form for a new one."""
    return _list(request, {"source": "", "name": "", "entries": "", "mode": "ask", "device": "auto"})


def _list(request: Request, values: dict[str, str], problem: str = "", status: int = 200) -> HTMLResponse:
    chats = _chats(request)
    cards = [(card, chats.find(card.name) is not None) for card in reversed(sessions.every())]
    given = {"model": starting.default_model(), **values}
    return page(request, "chats.html", status, cards=cards, values=given, problem=problem, modes=list(Mode))


@router.post("/chats")
def begin_chat(
    request: Request,
    source: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    entries: Annotated[str, Form()] = "",
    mode: Annotated[str, Form()] = "ask",
    device: Annotated[str, Form()] = "auto",
    model: Annotated[str, Form()] = "",
) -> Response:
    """Begin a chat about a repository."""
    values = {
        "source": source, "name": name, "entries": entries, "mode": mode, "device": device, "model": model
    }  # fmt: skip
    try:
        asked = starting.StartChat.model_validate({**values, "entries": [entries]})
        wanted = asked.request()
        called = asked.name.strip() or sessions.free_name(wanted.source)
        starting.usable_model(asked.model, wanted.source)
        _chats(request).open(called, asked.mode, asked.model, wanted)
    except ValidationError as error:
        return _list(request, values, error.errors()[0]["msg"], 422)
    except UserError as error:
        return _list(request, values, f"{error.message} {error.remedy}".strip(), 422)
    return RedirectResponse(f"/chats/{called}", 303)


@router.get("/chats/{name}")
def show_chat(request: Request, name: str) -> HTMLResponse:
    """A conversation; the page's script opens it."""
    chat = _chats(request).last(name)
    folder = sessions.folder_of(name)
    card = sessions.card(folder) if chat is None or sessions.is_made(folder) else None
    has_trace = any(True for _ in report.traces_of(folder.path))
    words = [(word, about.usage, about.help) for word, about in WORDS.items()]
    return page(request, "chat.html", name=name, card=card, words=words, modes=list(Mode), has_trace=has_trace)


@router.post("/chats/{name}/open")
def open_chat(request: Request, name: str, opening: Opening) -> JSONResponse:
    """Open a chat that is not open; one that failed to begin stays as it is, for its reason to be read."""
    chats = _chats(request)
    failed = chats.last(name)
    if failed is not None and not sessions.is_made(sessions.folder_of(name)):
        return JSONResponse({"open": failed.is_alive})
    if chats.find(name) is None:
        card = sessions.card(sessions.folder_of(name))
        model = card.model if opening.model is None else opening.model
        chats.open(name, opening.mode, model)
    return JSONResponse({"open": True})


@router.get("/chats/{name}/events")
async def chat_events(request: Request, name: str) -> Response:
    """What a chat says, from the event that the page has seen last."""
    chat = _chats(request).last(name)
    if chat is None:
        raise UserError(f"The chat {name[:64]} is not open.", "Open it.")
    return stream.streaming(request, _events(chat, stream.last_seen(request)))


async def _events(chat: OpenChat, seen: int) -> AsyncIterator[str]:
    while True:
        for number, one in chat.after(seen):
            seen = number
            yield stream.event("chat", one, number)
            if one["event"] == "closed":
                return
        yield ""
        await asyncio.sleep(_BETWEEN)


@router.post("/chats/{name}/say")
def say(request: Request, name: str, said: Said) -> JSONResponse:
    """Say something, or use a command."""
    _alive(request, name).say(said.text)
    return JSONResponse({"ok": True})


@router.post("/chats/{name}/answer")
def answer(request: Request, name: str, answered: Answer) -> JSONResponse:
    """Answer the question that the chat asks."""
    _alive(request, name).answer(answered.yes)
    return JSONResponse({"ok": True})


@router.post("/chats/{name}/{action}")
def act(request: Request, name: str, action: Literal["interrupt", "close"]) -> JSONResponse:
    """End what is going on, or close the chat; it is kept."""
    if action == "interrupt":
        _alive(request, name).interrupt()
    else:
        _chats(request).close(name)
    return JSONResponse({"ok": True})


@router.get("/chats/{name}/export")
def export(request: Request, name: str) -> Response:
    """The chat as Markdown."""
    chat = _chats(request).find(name)
    text = chat.export() if chat is not None else exported(name)
    headers = {"content-disposition": f'attachment; filename="{name}.md"'}
    return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)


@router.get("/chats/{name}/trace")
def trace(request: Request, name: str) -> HTMLResponse:
    """The tables of the newest /trace of a chat."""
    return page(request, "trace.html", name=name, traces=list(report.traces_of(sessions.find(name).path)))


def _alive(request: Request, name: str) -> OpenChat:
    found = _chats(request).find(name)
    if found is None:
        raise UserError(f"The chat {name[:64]} is not open.", "Open it again.")
    return found


def _chats(request: Request) -> Chats:
    found: Chats = request.app.state.chats
    return found
