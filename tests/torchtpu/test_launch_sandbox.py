"""What a workload in the sandbox can and cannot reach, and what its environment withholds."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torchtpu.launching import run
from torchtpu.launch import Outcome
from torchtpu.launcher import environment, sandbox

boxed = pytest.mark.skipif(sandbox.probe() is not None, reason="no bubblewrap")


@boxed
def test_files(tmp_path: Path) -> None:
    work, other, extra = tmp_path / "work", tmp_path / "other", tmp_path / "extra"
    for folder in (work, other, extra):
        folder.mkdir()
    (other / "data").write_text("readable")
    source = f"""
    import os, tempfile
    print(open({str(other / "data")!r}).read())
    def attempt(path):
        try:
            open(path, "w").write("x")
            print("wrote")
        except OSError as error:
            print(error.strerror)
    attempt({str(other / "data")!r})
    attempt(os.path.expanduser("~/torchtpu-was-here"))
    attempt("/etc/torchtpu-was-here")
    attempt({str(extra / "new")!r})
    attempt("new")
    attempt("/tmp/torchtpu-was-here")
    attempt(os.path.join(tempfile.gettempdir(), "x"))
    """
    result = run(work, source, sandbox="on", writable=[extra])
    assert result.sandboxed
    assert result.output_tail.splitlines() == [
        "readable",
        *["Read-only file system"] * 3,
        *["wrote"] * 4,
    ]
    assert (work / "new").exists()
    assert (extra / "new").exists()
    assert (other / "data").read_text() == "readable"
    assert not Path("/tmp/torchtpu-was-here").exists()


@boxed
def test_network_is_loopback_only(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        source = f"""
        import socket, threading
        try:
            socket.create_connection(("127.0.0.1", {outside.getsockname()[1]}), timeout=5)
            print("reached the host")
        except OSError as error:
            print(type(error).__name__)
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=server.accept, daemon=True).start()
        socket.create_connection(server.getsockname(), timeout=5)
        print("loopback works")
        socket.create_connection(("192.0.2.1", 80), timeout=5)
        """
        result = run(tmp_path, source, sandbox="on")
    assert result.output_tail.splitlines()[:2] == ["ConnectionRefusedError", "loopback works"]
    assert result.outcome is Outcome.EXCEPTION
    assert "no network" in result.explain()


@boxed
def test_other_processes_are_out_of_sight(tmp_path: Path) -> None:
    source = """
    import glob
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            print(open(path).read().replace(chr(0), " "))
        except OSError:
            pass
    """
    mark = f"outside-{tmp_path.name}"
    with subprocess.Popen([sys.executable, "-c", "input()", mark], stdin=subprocess.PIPE) as other:
        result = run(tmp_path, source, sandbox="on")
        seen = run(tmp_path, source, sandbox="off")
        other.communicate(b"\n")
    assert "prog.py" in result.output_tail
    assert mark not in result.output_tail
    assert mark in seen.output_tail


@boxed
def test_logins_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    for name in (".ssh", ".cache/huggingface"):
        (home / name).mkdir(parents=True)
    (home / ".ssh" / "id").write_text("key")
    (home / ".netrc").write_text("machine x login y password z")
    (home / ".cache" / "huggingface" / "token").write_text("hf_secret")
    (home / "notes").write_text("notes")
    monkeypatch.setenv("HOME", str(home))
    work = tmp_path / "work"
    work.mkdir()
    source = """
    import os, pathlib
    home = pathlib.Path.home()
    print(os.listdir(home / ".ssh"), (home / ".netrc").read_text(), (home / "notes").read_text())
    print((home / ".cache/huggingface/token").read_text())
    """
    result = run(work, source, sandbox="on")
    assert result.output_tail.split() == ["[]", "notes"]


@boxed
def test_cannot_undo_the_sandbox(tmp_path: Path) -> None:
    source = "import ctypes\nprint(ctypes.CDLL(None).mount(b'none', b'/', None, 4096 | 32, None))"
    assert run(tmp_path, source, sandbox="on").output_tail == "-1\n"


@pytest.mark.parametrize("box", ["off", "auto"])
def test_credentials_are_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, box: str) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("MY_SERVICE_API_KEY", "s3cret")
    monkeypatch.setenv("DB", "postgres://me:s3cret@host/db")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    names = ["HF_TOKEN", "MY_SERVICE_API_KEY", "DB", "TOKENIZERS_PARALLELISM", "WANDB_API_KEY"]
    source = f"import os; print(*map(os.environ.get, {names}))"
    result = run(tmp_path, source, sandbox=box, env={"WANDB_API_KEY": "given on purpose"})
    assert result.output_tail == "None None None false given on purpose\n"
    assert any("HF_TOKEN" in note and "s3cret" not in note for note in result.notes)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("AWS_SESSION_TOKEN", "x", True),
        ("SSH_AUTH_SOCK", "/tmp/x", True),
        ("GITHUB_TOKEN", "x", True),
        ("PGPASSWORD", "x", True),
        ("OPENAI_API_KEY", "x", True),
        ("PIP_INDEX_URL", "https://user:pw@host/simple", True),
        ("PIP_INDEX_URL", "https://host/simple", False),
        ("MAX_TOKENS", "100", False),
        ("PATH", "/bin", False),
        ("KEYBOARD", "us", False),
        ("MASTER_ADDR", "localhost", False),
    ],
)
def test_what_counts_as_a_credential(name: str, value: str, secret: bool) -> None:
    assert environment.is_credential(name, value) is secret


def test_without_bubblewrap_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "probe", lambda: "bubblewrap is not installed")
    result = run(tmp_path, "print(1)", sandbox="auto")
    assert result.outcome is Outcome.COMPLETED
    assert not result.sandboxed
    assert result.sandbox_note == "not sandboxed: bubblewrap is not installed"
    refused = run(tmp_path, "print(1)", sandbox="on")
    assert refused.outcome is Outcome.NOT_STARTED
    assert "bubblewrap is not installed" in refused.explain()


@boxed
def test_the_hint_for_a_read_only_place_names_what_can_be_done(tmp_path: Path) -> None:
    result = run(tmp_path, "open('/etc/torchtpu-here', 'w')", sandbox="on")
    assert "write there, or switch the sandbox off" in result.explain()
