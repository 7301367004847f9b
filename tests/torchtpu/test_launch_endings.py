"""How real programs end, and what the launcher says about it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.torchtpu.launching import processes_with, run, write
from torchtpu.launch import LaunchSpec, Outcome, launch
from torchtpu.launcher import sandbox

BOXES = [
    "off",
    pytest.param("on", marks=pytest.mark.skipif(sandbox.probe() is not None, reason="no bubblewrap")),
]


def test_completed(tmp_path: Path) -> None:
    result = run(tmp_path, "import sys; print('hello'); print('to stderr', file=sys.stderr)")
    assert result.outcome is Outcome.COMPLETED
    assert result.exit_code == 0
    assert result.output_tail == "hello\nto stderr\n"
    assert result.explain() == "The program finished."
    assert result.steps == 0
    assert result.device_ops is None


def test_result_is_json(tmp_path: Path) -> None:
    result = run(tmp_path, "print('x')", log=tmp_path / "log.txt")
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["outcome"] == "completed"
    assert data["log"] == str(tmp_path / "log.txt")
    assert (tmp_path / "log.txt").read_text() == "x\n"


@pytest.mark.parametrize("box", BOXES)
def test_exit_code_3(tmp_path: Path, box: str) -> None:
    result = run(tmp_path, "import sys; print('giving up'); sys.exit(3)", sandbox=box)
    assert result.outcome is Outcome.EXIT_NONZERO
    assert result.exit_code == 3
    assert "exit code 3" in result.explain()
    assert "giving up" in result.explain()


def test_os_exit(tmp_path: Path) -> None:
    result = run(tmp_path, "import os; os._exit(7)")
    assert result.outcome is Outcome.EXIT_NONZERO
    assert result.exit_code == 7
    assert "It printed nothing" in result.explain()


def test_exception_names_the_users_line(tmp_path: Path) -> None:
    write(tmp_path, "import json\ndef read(text):\n    return json.loads(text)\n", "model.py")
    result = run(tmp_path, "import model\n\nmodel.read('{')\n")
    assert result.outcome is Outcome.EXCEPTION
    error = result.exception
    assert error is not None
    assert error.type == "json.decoder.JSONDecodeError"
    assert [(f.file, f.line, f.function) for f in error.frames] == [
        ("prog.py", 3, "<module>"),
        ("model.py", 3, "read"),
    ]
    assert error.where is not None
    assert error.where.file.endswith("json/decoder.py")
    assert "model.py:3 in read: return json.loads(text)" in result.explain()


def test_a_child_that_only_tries_something_does_not_count(tmp_path: Path) -> None:
    result = run(tmp_path, "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import wonderful_lib'])\n")
    assert result.outcome is Outcome.COMPLETED


def test_a_shell_does_not_hide_how_its_program_ended(tmp_path: Path) -> None:
    write(tmp_path, "raise ValueError('inner')\n", "train.py")
    spec = LaunchSpec(["bash", "-c", "python train.py || true"], tmp_path, device="cpu", sandbox="off")
    result = launch(spec)
    assert result.outcome is Outcome.EXCEPTION
    assert result.exit_code == 0
    assert "train.py:1" in result.explain()


def test_exception_from_another(tmp_path: Path) -> None:
    result = run(tmp_path, "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('bad') from e\n")
    assert result.exception is not None
    assert result.exception.causes == ("ZeroDivisionError: division by zero",)


def test_own_excepthook_keeps_its_work(tmp_path: Path) -> None:
    result = run(tmp_path, "import sys\nsys.excepthook = lambda *a: print('mine')\nraise ValueError('bad')\n")
    assert result.outcome is Outcome.EXIT_NONZERO
    assert result.output_tail == "mine\n"
    assert "mine" in result.explain()


def test_syntax_error(tmp_path: Path) -> None:
    result = run(tmp_path, "x = 1\nprint 'python 2'\n")
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert result.exception.type == "SyntaxError"
    assert "prog.py:2" in result.explain()


def test_missing_module(tmp_path: Path) -> None:
    result = run(tmp_path, "import wonderful_lib.sub\n")
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert result.exception.missing == "wonderful_lib"
    assert "'wonderful_lib'" in result.explain()
    assert sys.executable in result.explain()
    assert "prog.py:1" in result.explain()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["python", "no_such.py"], "no_such.py"),
        (["python", "-m", "no_such_module"], "no_such_module"),
        (["no-such-command", "x"], "no-such-command"),
        (["./not_executable.py"], "not_executable.py"),
    ],
)
@pytest.mark.parametrize("box", BOXES)
def test_not_started(tmp_path: Path, argv: list[str], words: str, box: str) -> None:
    write(tmp_path, "print(1)", "not_executable.py").chmod(0o644)
    result = run(tmp_path, argv=argv, sandbox=box)
    assert result.outcome is Outcome.NOT_STARTED
    assert words in result.explain()


def test_no_interpreter_no_folder_no_command(tmp_path: Path) -> None:
    nowhere = run(tmp_path, "print(1)", python=tmp_path / "bin" / "python")
    assert nowhere.outcome is Outcome.NOT_STARTED
    assert str(tmp_path / "bin" / "python") in nowhere.explain()
    gone = launch(LaunchSpec(argv=["python"], cwd=tmp_path / "gone", device="cpu"))
    assert gone.outcome is Outcome.NOT_STARTED
    assert "gone" in gone.explain()
    assert launch(LaunchSpec(argv=[], cwd=tmp_path, device="cpu")).outcome is Outcome.NOT_STARTED


@pytest.mark.parametrize("box", BOXES)
def test_abort_names_signal_and_line(tmp_path: Path, box: str) -> None:
    source = """
    import os
    def train():
        print("F0000 00:00:1.2 9 computation_partitioner.cc:269] Check failed: nothing works")
        os.abort()
    train()
    """
    shown: list[str] = []
    result = run(tmp_path, source, sandbox=box, on_output=shown.append)
    assert result.outcome is Outcome.ABORT
    assert result.signal == "SIGABRT"
    assert result.exit_code is None
    assert result.fatal is not None
    assert result.fatal.endswith("nothing works")
    assert result.native_tail == (result.fatal,)
    assert [(f.file, f.function) for f in result.stack] == [("prog.py", "<module>"), ("prog.py", "train")]
    assert "prog.py:5 in train: os.abort()" in result.explain()
    assert shown == []


def test_segfault_in_native_code(tmp_path: Path) -> None:
    result = run(tmp_path, "import ctypes\nctypes.string_at(8)\n")
    assert result.outcome is Outcome.ABORT
    assert result.signal == "SIGSEGV"
    assert "prog.py:2" in result.explain()


def test_abort_below_a_shell(tmp_path: Path) -> None:
    write(tmp_path, "import os\nos.abort()\n")
    write(tmp_path, "python prog.py\nexit $?\n", "run.sh")
    result = run(tmp_path, argv=["bash", "run.sh"])
    assert result.outcome is Outcome.ABORT
    assert result.exit_code == 134
    assert result.signal == "SIGABRT"
    assert "prog.py:2" in result.explain()


def test_killed_from_outside(tmp_path: Path) -> None:
    result = run(tmp_path, "import os\nos.kill(os.getpid(), 9)\n")
    assert result.outcome is Outcome.ABORT
    assert result.signal == "SIGKILL"
    assert "outside" in result.explain()


@pytest.mark.parametrize("box", BOXES)
def test_daemon_is_reported_and_ended(tmp_path: Path, box: str) -> None:
    mark = f"daemon-{tmp_path.name}-{box}"
    source = f"""
    import os, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.closerange(3, 1000)
            os.execvp(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "{mark}"])
        os._exit(0)
    print("gone")
    """
    result = run(tmp_path, source, sandbox=box)
    assert result.outcome is Outcome.DAEMONISED
    assert mark in result.detail
    assert "in the background" in result.explain()
    assert processes_with(mark) == []


def test_bad_bytes_and_endless_line(tmp_path: Path) -> None:
    source = r"""
    import sys
    sys.stdout.buffer.write(b"caf\xe9 \xff\xfe\n")
    sys.stdout.buffer.write(b"x" * 3_000_000)
    sys.stdout.buffer.write(b"\rprogress\rend")
    """
    shown: list[str] = []
    result = run(tmp_path, source, on_output=shown.append, log=tmp_path / "log")
    assert result.outcome is Outcome.COMPLETED
    assert shown[0] == "caf� ��\n"
    assert sum(map(len, shown)) > 3_000_000
    assert max(map(len, shown)) < 1_000_000
    assert "end" in result.output_tail
    assert len(result.output_tail) <= 16 * 1024
    assert (tmp_path / "log").stat().st_size == result.output_bytes


def test_standard_input_is_at_its_end(tmp_path: Path) -> None:
    result = run(tmp_path, "print(repr(input()))")
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert result.exception.type == "EOFError"


def test_bash_entry_uses_the_workloads_python(tmp_path: Path) -> None:
    write(tmp_path, "import sys; print(sys.executable); raise KeyError('inner')\n")
    write(tmp_path, "set -e\npython3 -c 'import sys; print(sys.prefix)'\npython prog.py\n", "run.sh")
    result = run(tmp_path, argv=["bash", "run.sh"])
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert result.exception.type == "KeyError"
    assert result.output_tail.splitlines()[:2] == [sys.prefix, sys.executable]


def test_failed_child_of_a_program_that_goes_on(tmp_path: Path) -> None:
    source = """
    import subprocess, sys
    subprocess.run([sys.executable, "-c", "raise ValueError('inner')"])
    """
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED
    assert result.exception is None


def test_private_folder_is_removed(tmp_path: Path) -> None:
    source = """
    import os, tempfile
    folder = tempfile.mkdtemp()
    open(folder + "/x", "w").write("x")
    os.chmod(folder, 0)
    print(folder)
    """
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED
    folder = Path(result.output_tail.strip())
    assert "torchtpu-" in str(folder)
    assert not folder.exists()


def test_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, "import builtins; builtins.mine = 41\n", "sitecustomize.py")
    result = run(tmp_path, "print(mine + 1)", env={"PYTHONPATH": str(site)})
    assert result.output_tail == "42\n"


def test_other_interpreter_without_our_packages(tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("no other interpreter")
    source = """
    import sys, torchtpu.inject.start
    print([name for name in sys.modules if name.split(".")[0] in ("torch", "numpy", "pydantic")])
    raise OSError("x")
    """
    write(tmp_path, source)
    spec = LaunchSpec(argv=[python, "prog.py"], cwd=tmp_path, device="cpu", sandbox="off")
    result = launch(spec)
    assert result.outcome is Outcome.EXCEPTION
    assert result.output_tail.startswith("[]\n")


def test_the_projects_imported_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    write(tmp_path / "part", "", "__init__.py")
    write(tmp_path / "part", "x = 1", "net.py")
    write(tmp_path, "", "never.py")
    result = run(tmp_path, "import os, part.net; os.chdir('/')")
    assert result.loaded == ("part/__init__.py", "part/net.py", "prog.py")


def test_a_backend_frame_is_told_only_of_the_thread_that_died(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "torch_tpu"
    folder.mkdir(parents=True)
    write(folder, "", "__init__.py")
    write(folder, "import os\ndef launch():\n    os.abort()\ndef wait(event):\n    event.wait()\n", "kernel.py")
    path = f"import os, sys, threading; sys.path.insert(0, '{folder.parent}')\n"
    backend = run(tmp_path, f"{path}from torch_tpu.kernel import launch\nlaunch()")
    assert "kernel.py" in (backend.backend_frame or "")
    waiting = "threading.Thread(target=wait, args=[threading.Event()], daemon=True).start()"
    own = run(tmp_path, f"{path}from torch_tpu.kernel import wait\n{waiting}\nos.abort()")
    assert (own.outcome, own.backend_frame) == (Outcome.ABORT, None)
