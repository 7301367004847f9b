"""A Postgres of its own in a folder, run by somebody who is not root, and gone afterwards."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
"""Holds a folder for each version."""


def programs() -> Path | None:
    """The folder of the newest server's programs; clients alone have a folder too, without initdb."""
    found = {float(path.parents[1].name): path.parent for path in DEBIAN.glob("[0-9]*/bin/initdb")}
    return found[max(found)] if found else None


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a database that lives as long as the context.

    Args:
        folder: Is made, and removed at the end. Postgres refuses to run as root, so its path must be open to others.
    """
    where = programs()
    assert where is not None, f"Postgres is not installed in {DEBIAN}"
    run = functools.partial(_run, where)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    as_root = os.geteuid() == 0
    user = "postgres" if as_root else pwd.getpwuid(os.geteuid()).pw_name
    if as_root:
        shutil.chown(folder, user)
    port = _free_port()
    data = folder / "data"
    try:
        run(user, "initdb", "-D", str(data), "-U", "bot", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=on -c max_connections=200"
        run(user, "pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://bot@127.0.0.1:{port}/postgres"
        finally:
            run(user, "pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(where: Path, user: str, program: str, *arguments: str) -> None:
    options = {"user": user, "group": user, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(
        [str(where / program), *arguments], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd="/",
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, **options,
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
