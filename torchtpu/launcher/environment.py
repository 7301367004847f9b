"""Builds a workload's private folder and its environment: injected code on the path, credentials left out."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torchtpu

_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|TOKENS|SECRET|SECRETS|\w*PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|APIKEY|PAT)(?:$|_)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|ACCOUNT|SIGNING|ENCRYPTION|AUTH)_?KEY"
    r"|^(?:AWS|AZURE|ARM)_|^GOOGLE_APPLICATION_|^(?:SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|KUBECONFIG"
    r"|DBUS_SESSION_BUS_ADDRESS|DOCKER_AUTH_CONFIG|NETRC|DATABASE_URL)$",
    re.IGNORECASE,
)
# Settings that only look like secrets.
_HARMLESS = re.compile(
    r"^TOKENIZERS_|_CA_BUNDLE$|_REGION$|_(?:TOKENS?_PER|MAX_TOKENS|NUM_TOKENS)|^MAX_TOKENS$", re.IGNORECASE
)
# Programs beside the interpreter that start Python programs.
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
_RESTORED = ("TORCHTPU_", "TPU_LIBRARY_PATH", "TPU_SKIP_MDS_QUERY", "TORCH_DEVICE_BACKEND_AUTOLOAD")
_PREFIX, _LOCK = "torchtpu-", "launcher.lock"
_LOGIN_IN_URL = re.compile(r"\w+://[^/\s:@]+:[^/\s@]+@")


class Private:
    """A folder of one run: events, temporary files, and a path that shows the workload torchtpu and nothing else."""

    def __init__(self) -> None:
        remove_abandoned(Path(tempfile.gettempdir()))
        self.root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.events = self.root / "events"
        self.tmp = self.root / "tmp"
        self.path = self.root / "path"
        self.bin = self.root / "bin"
        for folder in (self.events, self.tmp, self.path, self.bin):
            folder.mkdir()
        package = Path(torchtpu.__file__).resolve().parent
        (self.path / "torchtpu").symlink_to(package, target_is_directory=True)
        (self.path / "sitecustomize.py").symlink_to(package / "inject" / "sitecustomize.py")

    def add_commands(self, python: Path, env: Mapping[str, str]) -> None:
        """Makes ``python`` of scripts mean the workload's interpreter, in an environment of ours.

        A script may well start it with a PYTHONPATH of its own, or without any variables.
        """
        commands = {"python": python, "python3": python}
        commands |= {name: python.parent / name for name in _LAUNCHERS if (python.parent / name).exists()}
        restored = "".join(
            f'[ "${{{name}+x}}" ] || export {name}={shlex.quote(value)}\n'
            for name, value in env.items()
            if name.startswith(_RESTORED)
        )
        here = shlex.quote(str(self.path))
        restored += f'case ":$PYTHONPATH:" in *:{here}:*) ;; *) PYTHONPATH={here}${{PYTHONPATH:+:$PYTHONPATH}};; esac\n'
        for name, program in commands.items():
            script = self.bin / name
            script.write_text(f'#!/bin/sh\n{restored}export PYTHONPATH\nexec {shlex.quote(str(program))} "$@"\n')
            script.chmod(0o755)

    def remove(self) -> None:
        """Deletes it, whatever modes the workload has set inside."""
        _remove(self.root)
        os.close(self._lock)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        for folder, _, _ in os.walk(root):
            Path(folder).chmod(0o700)
        shutil.rmtree(root, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Deletes the folders of runs whose launcher was killed: nobody holds their lock any more."""
    for root in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(root / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(root)
        except OSError:
            continue
        finally:
            os.close(lock)


def is_credential(name: str, value: str) -> bool:
    """Says whether a variable holds something a stranger's program must not see."""
    if _LOGIN_IN_URL.search(value):
        return True
    return bool(_SECRET.search(name)) and not _HARMLESS.search(name)


def scrub(variables: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Returns the variables without credentials, and the names of those left out."""
    withheld = sorted(name for name, value in variables.items() if is_credential(name, value))
    return {name: value for name, value in variables.items() if name not in withheld}, withheld


def _prepend(value: str, to: str | None) -> str:
    return f"{value}{os.pathsep}{to}" if to else value


def build(
    private: Private,
    python: Path,
    cwd: Path,
    device: Mapping[str, str],
    extra: Mapping[str, str],
    max_steps: int | None,
) -> tuple[dict[str, str], list[str]]:
    """Returns the workload's environment, and the names of the credentials withheld from it.

    Args:
        private: The run's folder.
        python: The workload's interpreter.
        cwd: The project.
        device: Variables of the device.
        extra: The caller's own; they win, and are not scrubbed.
        max_steps: Steps after which the program is ended.
    """
    base, withheld = scrub(os.environ)
    base.pop("PYTHONHOME", None)
    # 1 lets TorchTPU's warnings into the log, operators that fell back to the CPU among them; they are not shown.
    ours = {"PYTHONUNBUFFERED": "1", "TMPDIR": str(private.tmp), "TF_CPP_MIN_LOG_LEVEL": "1"}
    env = {**base, **ours, **device, **extra}
    path = f"{private.bin}{os.pathsep}{python.parent}"
    env["PATH"] = _prepend(path, env.get("PATH") or os.defpath)
    env["PYTHONPATH"] = _prepend(str(private.path), env.get("PYTHONPATH"))
    env["TORCHTPU_EVENTS"] = str(private.events)
    env["TORCHTPU_ROOT"] = str(cwd)
    if max_steps is not None:
        env["TORCHTPU_MAX_STEPS"] = str(max_steps)
    if sys.prefix != sys.base_prefix and env.get("VIRTUAL_ENV") == sys.prefix:
        env["VIRTUAL_ENV"] = str(python.parent.parent)
    return env, withheld
