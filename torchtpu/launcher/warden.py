"""Stands between the launcher and a workload: starts it, adopts its orphans, ends every descendant.

Run as a script, isolated and without site-packages, in the sandbox when there is one. It takes commands on one
pipe (``end SECONDS``, ``signal NUMBER PID``) and answers on another with JSON lines (``started``, ``failed``,
``exited``). When the command pipe closes, the launcher is gone and everything is ended at once.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL = 0.05
# A resource tracker or a logger's last thread ends by itself; what is still there after this was left behind.
LINGER = 3.0
# These end by themselves once their parent is gone, slowly on a busy machine where they have imported much.
HELPERS = ("from multiprocessing.forkserver import main", "from multiprocessing.resource_tracker import main")
HELPERS_LINGER = 30.0


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _parents() -> dict[int, int]:
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            parents[int(name)] = int(fields[1])
    return parents


def descendants() -> list[int]:
    """Returns the living processes below this one; orphans are among them, since it adopts them."""
    parents = _parents()
    me = os.getpid()
    found = []
    for pid in parents:
        above, seen = pid, set()
        while above in parents and above not in seen and above != me:
            seen.add(above)
            above = parents[above]
        if above == me and pid != me:
            found.append(pid)
    return found


def _send(number: int, pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _child(config: dict[str, Any], status: int) -> None:
    os.setpgid(0, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for name, value in config["rlimits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        resource.setrlimit(number, (value, value) if hard == resource.RLIM_INFINITY else (min(value, hard), hard))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("800")
    except OSError:
        pass
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    what = config["cwd"]
    try:
        os.chdir(what)
        what = config["argv"][0]
        os.execvpe(what, config["argv"], os.environ)
    except OSError as error:
        report = {"failed": error.errno, "message": os.strerror(error.errno or 0), "what": what}
        os.write(status, json.dumps(report).encode() + b"\n")
    finally:
        os._exit(127)


class Warden:
    """One workload and all that descends from it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.control = config["control"]
        self.status = config["status"]
        self.code: int | None = None
        self.ending: float | None = None
        self.buffer = b""

    def report(self, **fields: object) -> None:
        """Writes one line to the launcher, which may be gone."""
        try:
            os.write(self.status, json.dumps(fields).encode() + b"\n")
        except OSError:
            self.ending = 0.0

    def start(self) -> None:
        """Starts the workload."""
        self.main = os.fork()
        if self.main == 0:
            os.close(self.control)
            os.set_inheritable(self.status, False)
            _child(self.config, self.status)
        self.report(started=self.main)

    def reap(self) -> None:
        """Collects the dead, and keeps how the workload itself ended."""
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.code = code

    def listen(self) -> None:
        """Waits a moment for commands and obeys them."""
        ready, _, _ = select.select([self.control], [], [], POLL)
        if not ready:
            return
        data = os.read(self.control, 4096)
        if not data:
            self.kill()
            os._exit(1)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.obey(line.split())

    def obey(self, words: list[bytes]) -> None:
        """Carries out one command."""
        if words[0] == b"signal" and int(words[2]) in descendants():
            _send(int(words[1]), [int(words[2])])
        elif words[0] == b"end" and self.ending is None:
            _send(signal.SIGTERM, descendants())
            _send(signal.SIGCONT, descendants())
            self.ending = time.monotonic() + float(words[1])

    def kill(self) -> None:
        """Kills every descendant, and those born meanwhile."""
        while True:
            self.reap()
            living = descendants()
            if not living:
                return
            _send(signal.SIGKILL, living)
            time.sleep(0.01)

    def run(self) -> None:
        """Supervises until the workload and all it left are gone, then says how it ended."""
        self.start()
        while self.code is None and (self.ending is None or time.monotonic() < self.ending):
            self.listen()
            self.reap()
        left = self.wait_for_the_rest() if self.ending is None else []
        self.kill()
        self.reap()
        code = None if self.code is None else os.waitstatus_to_exitcode(self.code)
        died = code is not None and code < 0
        self.report(exited=None if died else code, signal=-code if died and code else None, left=left)

    def wait_for_the_rest(self) -> list[str]:
        """Returns the command lines of the processes that outlive the workload."""
        began = time.monotonic()
        while self.ending is None:
            self.reap()
            left = descendants()
            helpers = all(_goes_by_itself(_command_line(pid)) for pid in left)
            if not left or time.monotonic() - began > (HELPERS_LINGER if helpers else LINGER):
                break
            self.listen()
        return [f"{pid}: {_command_line(pid)}" for pid in descendants()][:10]


def _goes_by_itself(line: str) -> bool:
    """Whether a process is one of multiprocessing's helpers, or is on its way out and has no command line any more."""
    return not line or any(name in line for name in HELPERS)


def main() -> None:
    """Runs the workload named by the JSON in the first argument."""
    config = json.loads(sys.argv[1])
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for name in ("control", "status"):
        os.set_inheritable(config[name], False)
    Warden(config).run()


if __name__ == "__main__":
    main()
