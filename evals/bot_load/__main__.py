"""Runs it: `python -m evals.bot_load [--deliveries N] [--rate N] [--publish]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from evals.bot_load.database import DEBIAN, postgres, programs
from evals.fake_github.deliver import comment_event, headers_of
from evals.fake_github.server import serving
from evals.fake_github.state import State

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "evals" / "results"
SECRET = "a secret for the load test"
THREADS = 50
"""Conversations the deliveries are spread over."""
Shot = tuple[float, bytes, dict[str, str]]


def main() -> int:
    """Measure, print, and write the results where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliveries", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=50.0, help="deliveries a second")
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds between deaths of workers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for the jobs afterwards")
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--publish", action="store_true", help="write evals/results/bot_load.{json,md}")
    options = parser.parse_args()
    found = []
    for name in options.databases.split(","):
        if name == "postgres" and programs() is None:
            print(f"postgres: not run, it is not installed in {DEBIAN}")
            continue
        with tempfile.TemporaryDirectory(prefix="bot-load-") as folder:
            row = _measure(name, options, Path(folder))
        found.append(row)
        print(json.dumps(row), flush=True)
    if options.publish:
        _write(found)
    return 0 if found and all(row["lost"] == row["doubled"] == row["refused"] == 0 for row in found) else 1


def _measure(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    private, public = _keys()
    key = folder / "key.pem"
    key.write_text(private)
    state = State(folder / "github", public)
    state.install()
    state.page_size = 100
    state.add_repository("team", "project", {"a.py": "x = 1\n"}, writers=("ann",))
    with serving(state) as github, _database(name, folder) as url:
        env = _environment(folder, url, github.url, key)
        shots, distinct = _shots(state, options.deliveries)
        with _server(env, folder, "bare") as address:
            bare = _fire(f"{address}/github/webhook", shots[:: max(1, len(shots) // 500)], options.rate)
        with _server(env, folder, "bot") as address:
            began = time.monotonic()
            with _workers(env, folder, options.workers, options.kill_every) as deaths:
                took = _fire(f"{address}/github/webhook", shots, options.rate)
                accepted = time.monotonic() - began
                _wait(lambda: _done(state) >= distinct, options.patience)
                finished = time.monotonic() - began
        return _row(name, options, state, distinct, took, bare, deaths, accepted, finished)


def _row(
    name: str, options: argparse.Namespace, state: State, distinct: int, took: list[tuple[int, float]],
    bare: list[tuple[int, float]], deaths: list[int], accepted: float, finished: float,
) -> dict[str, Any]:  # fmt: skip
    comments = Counter(one["body"].split("<!--")[-1] for one in _ours(state))
    reactions = Counter(what for kind, what in state.effects if kind == "reaction")
    return {
        "database": name, "deliveries": len(took), "jobs": distinct, "rate": options.rate,
        "refused": sum(status != 202 for status, _ in took), "workers": options.workers, "killed": len(deaths),
        "done": len(comments), "lost": distinct - len(comments), "unreacted": distinct - len(reactions),
        "doubled": sum(count - 1 for count in (comments + reactions).values()),
        "acknowledged_ms": _percentiles([seconds for _, seconds in took]),
        "bare_ms": _percentiles([seconds for _, seconds in bare]),
        "accepted_s": round(accepted, 1), "finished_s": round(finished, 1), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def _ours(state: State) -> list[dict[str, Any]]:
    with state.lock:
        repository = state.repositories["team/project"]
        return [one for one in repository.comments.values() if one["performed_via_github_app"]]


def _done(state: State) -> int:
    return len(_ours(state))


def _shots(state: State, count: int) -> tuple[list[Shot], int]:
    """When to send what: a fifth are sent twice, a tenth come late; and how many are distinct."""
    repository = state.repositories["team/project"]
    random.seed(20261201)
    distinct = round(count / 1.2)
    numbers = [state.open_issue(repository) for _ in range(THREADS)]
    shots: list[Shot] = []
    for index in range(distinct):
        event, payload = comment_event(
            state, repository, numbers[index % THREADS], "ann", f"/torchtpu explain TPU{index}"
        )
        body = json.dumps(payload).encode()
        shots.append((float(index), body, headers_of(event, body, SECRET)))
    # People's comments need not be read back by the bot page after page: it looks for its own.
    doubles = [
        (at + random.uniform(0, 50), body, headers) for at, body, headers in random.sample(shots, count - distinct)
    ]
    late = set(random.sample(range(distinct), distinct // 10))
    moved = [(at + random.uniform(5, 100) if at in late else at, body, headers) for at, body, headers in shots]
    return sorted([*moved, *doubles], key=lambda shot: shot[0]), distinct


def _fire(url: str, shots: list[Shot], rate: float) -> list[tuple[int, float]]:
    """Send them at a rate, whatever the answers do; status and seconds of each."""
    began = time.monotonic()
    with httpx.Client(timeout=60, limits=httpx.Limits(max_connections=64, max_keepalive_connections=64)) as client:

        def send(index: int) -> tuple[int, float]:
            time.sleep(max(0.0, began + index / rate - time.monotonic()))
            at = time.monotonic()
            try:
                status = client.post(url, content=shots[index][1], headers=shots[index][2]).status_code
            except httpx.HTTPError:
                status = 0
            return status, time.monotonic() - at

        with ThreadPoolExecutor(32) as pool:
            return list(pool.map(send, range(len(shots))))


@contextmanager
def _database(name: str, folder: Path) -> Iterator[str]:
    if name == "sqlite":
        yield f"sqlite:///{folder / 'jobs.sqlite'}"
        return
    with postgres(Path(f"/tmp/bot-load-pg-{os.getpid()}")) as url:
        yield url


@contextmanager
def _server(env: dict[str, str], folder: Path, kind: str) -> Iterator[str]:
    """The webhook, or an endpoint that does nothing, in a process of its own."""
    told = folder / f"{kind}.address"
    process = subprocess.Popen([sys.executable, "-m", "evals.bot_load.server", kind, str(told)], cwd=ROOT, env=env)
    try:
        _wait(told.exists, 120)
        yield told.read_text()
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _workers(env: dict[str, str], folder: Path, count: int, every: float) -> Iterator[list[int]]:
    """Workers of which one is killed every few seconds, and followed by another."""
    closing = threading.Event()
    deaths: list[int] = []

    def start() -> tuple[subprocess.Popen[bytes], Path]:
        log = folder / f"worker-{len(deaths)}-{time.monotonic_ns()}.log"
        with log.open("wb") as file:
            command = [sys.executable, "-m", "agents.cli", "worker"]
            return subprocess.Popen(command, cwd=ROOT, env=env, stdout=file, stderr=file), log

    running = [start() for _ in range(count)]

    def kill() -> None:
        while not closing.is_set():
            # One that has not begun has no job to lose.
            ready = [pair for pair in running if b"takes jobs" in pair[1].read_bytes()]
            if closing.wait(every if ready else 0.5) or not ready:
                continue
            running.remove(ready[0])
            ready[0][0].send_signal(signal.SIGKILL)
            ready[0][0].wait()
            deaths.append(ready[0][0].pid)
            running.append(start())

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield deaths
    finally:
        closing.set()
        killer.join()
        for process, _ in running:
            process.terminate()
        for process, _ in running:
            process.wait(60)


def _environment(folder: Path, url: str, github: str, key: Path) -> dict[str, str]:
    return {
        **os.environ, "TORCHTPU_HOME": str(folder / "home"), "TORCHTPU_DATABASE_URL": url,
        "TORCHTPU_GITHUB_APP_ID": "4242", "TORCHTPU_GITHUB_PRIVATE_KEY_FILE": str(key),
        "TORCHTPU_GITHUB_WEBHOOK_SECRET": SECRET, "TORCHTPU_GITHUB_API_URL": github,
        "TORCHTPU_GITHUB_WEB_URL": github, "TORCHTPU_GITHUB_LEASE_SECONDS": "10", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.5)


def _percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {name: round(1000 * ordered[int(share * (len(ordered) - 1))], 1) for name, share in _SHARES.items()}


_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _keys() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _write(found: list[dict[str, Any]]) -> None:
    head = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "command": "python -m evals.bot_load --publish", "rows": found,
    }  # fmt: skip
    (RESULTS / "bot_load.json").write_text(json.dumps(head, indent=1) + "\n")
    lines = [
        "# The bot under load", "",
        "Deliveries of comments over real HTTP, a fifth of them twice and a tenth out of order, while workers are",
        "killed with SIGKILL. Effects are counted at a fake GitHub: a comment and a reaction for each job. The time is",
        "that of the webhook's answer; the bare endpoint is FastAPI's with nothing in it, on the same machine.", "",
        f"{head['date']}, {head['machine']}, which runs other programs too: `{head['command']}`", "",
        "| database | deliveries | jobs | killed | lost | doubled | refused | p50, p99 ms | bare | done after s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in found:
        took, bare = row["acknowledged_ms"], row["bare_ms"]
        cells = (
            row["database"], row["deliveries"], row["jobs"], row["killed"], row["lost"], row["doubled"], row["refused"],
            f"{took['p50']}, {took['p99']}", f"{bare['p50']}, {bare['p99']}", row["finished_s"],
        )  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    (RESULTS / "bot_load.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
