"""The bot's webhook alone, or an endpoint with nothing in it, to be compared: `server bot|bare FILE`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from agents.bot.settings import configured
from agents.bot.webhook import router


def main() -> None:
    """Serve, and write the address to the file."""
    kind, told = sys.argv[1], Path(sys.argv[2])
    app = FastAPI()
    if kind == "bot":
        settings = configured()
        assert settings is not None
        app.include_router(router(settings))
    else:

        @app.post("/github/webhook", status_code=202)
        async def nothing() -> dict[str, bool]:
            """Answer."""
            return {"taken": True}

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        beside = told.with_suffix(".new")
        beside.write_text(f"http://127.0.0.1:{listening.getsockname()[1]}")
        beside.rename(told)  # whoever waits for the file reads all of it
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


if __name__ == "__main__":
    main()
