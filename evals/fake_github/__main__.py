"""A GitHub to try the bot with: `python -m evals.fake_github [FOLDER]`.

Makes an app, a repository with a CUDA program and an issue; writes the bot's settings to a file; and sends what is
typed as comments of somebody with write access, printing what the bot answers.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import threading
import time
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from evals import task as tasks
from evals.fake_github.deliver import comment_event, installation_event, send
from evals.fake_github.server import serving
from evals.fake_github.state import Repository, State

PORT = 8799
BOT = "http://127.0.0.1:8700"


def main() -> int:
    """Serve until the input ends."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/fake-github").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(16)
    state = State(folder / f"git-{secrets.token_hex(3)}", _keys(folder))
    state.install()
    repository = _repository(state)
    number = state.open_issue(repository, "Run on TPU")
    _settings(folder, secret)
    with serving(state, PORT) as server:
        print(f"GitHub is at {server.url}; {repository.full_name} has issue #{number}. Start the bot beside it:")
        print(f"  set -a; . {shlex.quote(str(folder / 'bot.env'))}; set +a; torchtpu-agent serve")
        print("Then type a comment here, such as: /torchtpu scan", flush=True)
        threading.Thread(target=_show, args=(state, repository), daemon=True).start()
        sent = False
        for line in sys.stdin:
            try:
                if not sent:
                    send(BOT, secret, installation_event("created"))
                    sent = True
                answer = send(BOT, secret, comment_event(state, repository, number, "you", line.rstrip("\n")))
                print(f"[{answer.status_code}] {answer.json()}", flush=True)
            except httpx.HTTPError as error:
                print(f"The bot does not answer at {BOT}: {error}", flush=True)
    return 0


def _repository(state: State) -> Repository:
    task = tasks.load("chargpt")
    source = state.folder / "source"
    task.checkout(source)
    files = {
        path.relative_to(source).as_posix(): path.read_text()
        for path in source.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(source).parts
    }
    return state.add_repository("you", "chargpt", files, writers=("you",))


def _keys(folder: Path) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = folder / "app.pem"
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _settings(folder: Path, secret: str) -> None:
    values = {
        "APP_ID": "4242",
        "PRIVATE_KEY_FILE": str(folder / "app.pem"),
        "WEBHOOK_SECRET": secret,
        "API_URL": f"http://127.0.0.1:{PORT}/api/v3",
        "WEB_URL": f"http://127.0.0.1:{PORT}",
        "PUBLIC_URL": BOT,
    }
    lines = [f"TORCHTPU_GITHUB_{name}={shlex.quote(value)}" for name, value in values.items()]
    file = folder / "bot.env"
    file.touch(mode=0o600)
    file.write_text("\n".join(lines) + "\n")


def _show(state: State, repository: Repository) -> None:
    """Print what the bot writes, once it has settled."""
    seen: dict[str, str] = {}
    while os.getppid():
        time.sleep(1)
        with state.lock:
            comments = [one for one in repository.comments.values() if one["performed_via_github_app"]]
            now = {f"comment {one['id']}": str(one["body"]) for one in comments}
            now |= {
                f"pull request #{number}": f"{pull['title']}\n{pull['body']}"
                for number, pull in repository.pulls.items()
            }
            now |= {
                f"check run {one['name']} ({len(one['annotations'])} annotations)": f"{one['conclusion']}"
                for one in repository.checks.values()
            }
        for name, text in now.items():
            if seen.get(name) != text:
                print(f"--- {name}\n{text.split('<!--')[0].rstrip()[:3000]}", flush=True)
        seen = now


if __name__ == "__main__":
    raise SystemExit(main())
