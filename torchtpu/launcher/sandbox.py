"""Builds the bubblewrap command that keeps a workload from the network, the file system and other processes."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# Where people and tools keep logins, below the home folder.
_SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".oci", ".password-store", ".mozilla",
    ".config/gh", ".config/gcloud", ".config/hub", ".config/google-chrome", ".config/chromium",
    ".local/share/keyrings", ".netrc", ".git-credentials", ".config/git/credentials", ".pypirc", ".npmrc",
    ".huggingface/token", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle", ".boto",
)  # fmt: skip
_DEVICES = ("/dev/vfio", "/dev/accel0", "/dev/accel1", "/dev/accel2", "/dev/accel3")
_MAX_ENTRIES = 1000
# Without a network these libraries use what is on disk at once instead of trying until they give up.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "offline"}
_ROOT_CAPABILITIES = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN")


@dataclass(frozen=True)
class Sandbox:
    """A command prefix, empty without a sandbox, and what to tell a person about it."""

    prefix: tuple[str, ...]
    note: str

    @property
    def on(self) -> bool:
        """Whether there is one."""
        return bool(self.prefix)


def _isolation() -> list[str]:
    options = ["--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    options += ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # Root without these cannot write files of other users, such as a checkout in a bind mount.
        options += [word for name in _ROOT_CAPABILITIES for word in ("--cap-add", name)]
    return [*options, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]


@functools.cache
def probe() -> str | None:
    """Returns why bubblewrap cannot be used here, or None; it is really tried, once."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (Debian: apt install bubblewrap)"
    try:
        done = subprocess.run([program, *_isolation(), "true"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run here ({error})"
    if done.returncode != 0:
        return f"bubblewrap does not work here ({done.stderr.strip()[:200] or done.returncode})"
    return None


def _binds(option: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]


def _entries(folder: Path) -> Iterator[Path]:
    found = []
    for entry in folder.iterdir():
        try:
            status = entry.lstat()
        except OSError:
            continue
        # Sockets (agents, displays), links and other runs' private folders stay outside.
        if (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)) and not entry.name.startswith("torchtpu-"):
            found.append((status.st_mtime, entry))
    yield from (entry for _, entry in sorted(found, reverse=True)[:_MAX_ENTRIES])


def _temporary(private: Path) -> list[str]:
    """Makes the shared temporary folder writable without letting the workload write into the real one."""
    # Tried, not demanded: other programs' temporary files come and go.
    shared = Path(tempfile.gettempdir()).resolve()
    stand_in = private / "shared-tmp"
    stand_in.mkdir(exist_ok=True)
    return ["--bind", str(stand_in), str(shared), *_binds("--ro-bind-try", list(_entries(shared)))]


def _hidden_secrets(private: Path) -> list[str]:
    nothing = private / "nothing"
    nothing.touch()
    options = []
    for name in _SECRETS:
        path = Path.home() / name
        if path.is_dir():
            options += ["--tmpfs", str(path.resolve())]
        elif path.is_file():
            options += ["--ro-bind", str(nothing), str(path.resolve())]
    return options


def _devices() -> list[str]:
    return [word for name in _DEVICES if Path(name).exists() for word in ("--dev-bind", name, name)]


def build(
    wanted: Literal["auto", "on", "off"],
    private: Path,
    writable: Sequence[Path],
    readable: Sequence[Path],
    memory: int | None,
) -> Sandbox:
    """Returns the sandbox for one run.

    Args:
        wanted: ``off`` gives none.
        private: The run's own folder.
        writable: Folders the workload may write to.
        readable: Folders it must see even inside the shared temporary folder.
        memory: Bytes that its shared memory may take.
    """
    if wanted == "off":
        return Sandbox((), "not sandboxed: switched off")
    problem = probe()
    if problem is not None:
        return Sandbox((), f"not sandboxed: {problem}")
    program = shutil.which("bwrap")
    assert program is not None
    options = [
        *_isolation(),
        *(["--size", str(memory)] if memory else []),
        *["--perms", "1777", "--tmpfs", "/dev/shm"],
        *_devices(),
        *_temporary(private),
        *_hidden_secrets(private),
        *_binds("--ro-bind", readable),
        *_binds("--bind", writable),
        *_binds("--bind", [private / "events", private / "tmp"]),
    ]
    note = "sandboxed: no network, files read-only except the working copy, logins hidden"
    return Sandbox((program, *options, "--"), note)
