"""A fake GitHub, a bot that knows it, and a worker in this process or in one that can be killed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from fastapi import FastAPI
from pydantic import SecretStr

from agents.bot.settings import BotSettings
from agents.bot.webhook import router
from evals.fake_github.deliver import Event, comment_event, send
from evals.fake_github.server import FakeGitHub, serving
from evals.fake_github.state import Repository, State

SECRET = "a secret of sixteen letters"
PROGRAM = """\
import sys

WORDS = sys.argv[1:]


def place(model):
    return model.cuda()


if __name__ == "__main__":
    print("ran", WORDS)
"""
TRAIN = "import torch\n\n\ndef place(model):\n    return model.cuda()\n"


@pytest.fixture(scope="session")
def keys() -> tuple[str, str]:
    """The app's private and public key, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return private, public


@pytest.fixture
def state(tmp_path: Path, keys: tuple[str, str]) -> State:
    made = State(tmp_path / "github", keys[1])
    made.install()
    return made


@pytest.fixture
def github(state: State) -> Iterator[FakeGitHub]:
    with serving(state) as server:
        yield server


@pytest.fixture
def repository(state: State) -> Repository:
    files = {"train.py": TRAIN, "hello.py": PROGRAM, "README.md": "# A project\n"}
    return state.add_repository("team", "project", files, writers=("ann",))


@pytest.fixture
def settings(github: FakeGitHub, keys: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BotSettings:
    monkeypatch.setenv("TORCHTPU_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "1")
    (tmp_path / "home").mkdir()
    return BotSettings(
        app_id=4242, private_key=SecretStr(keys[0]), webhook_secret=SecretStr(SECRET), api_url=f"{github.url}/api/v3",
        web_url=github.url, device="cpu", poll_seconds=0.05, lease_seconds=2, request_seconds=3, progress_seconds=0.1,
    )  # fmt: skip


@dataclass
class Bot:
    """The webhook on an address, beside a fake GitHub."""

    url: str
    state: State
    repository: Repository
    settings: BotSettings
    deliveries: list[str] = field(default_factory=list)

    def deliver(self, event: Event, delivery: str | None = None) -> httpx.Response:
        return send(self.url, SECRET, event, delivery)

    def comment(self, number: int, body: str, user: str = "ann") -> str:
        """A person comments; the id of the job."""
        answer = self.deliver(comment_event(self.state, self.repository, number, user, body))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job"])

    def effects(self, kind: str) -> list[str]:
        return [what for one, what in list(self.state.effects) if one == kind]

    def said(self, number: int) -> list[str]:
        return [str(one["body"]) for one in self.state.bot_comments(self.repository, number)]


def until(condition: Callable[[], Any], seconds: float = 200.0) -> Any:
    """What a condition gives once it holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    pytest.fail("it did not come to be")


@pytest.fixture
def bot(settings: BotSettings, state: State, repository: Repository) -> Iterator[Bot]:
    app = FastAPI()
    app.include_router(router(settings))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    made = Bot(f"http://127.0.0.1:{listening.getsockname()[1]}", state, repository, settings)
    yield made
    for number in repository.issues:
        print(f"#{number}:", *made.said(number), sep="\n")  # shown where a test fails
    print(state.effects)
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture
def worker(bot: Bot) -> Iterator[None]:
    """A worker in this process."""
    from agents.bot.worker import Worker

    made = Worker(bot.settings)
    made.start()
    yield
    made.stop()
