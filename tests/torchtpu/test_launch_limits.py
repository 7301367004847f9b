"""Programs that would cost the machine too much are ended, with all their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.torchtpu.launching import processes_with, run, wait_until, write
from torchtpu.launch import Outcome
from torchtpu.launcher import sandbox

MiB = 1024 * 1024
BOXES = [
    "off",
    pytest.param("on", marks=pytest.mark.skipif(sandbox.probe() is not None, reason="no bubblewrap")),
]


@pytest.mark.parametrize("box", BOXES)
def test_sleeping_program_hangs_at_its_line(tmp_path: Path, box: str) -> None:
    source = """
    import time
    def wait():
        time.sleep(1000)
    wait()
    """
    result = run(tmp_path, source, idle_limit=2, sandbox=box)
    assert result.outcome is Outcome.HANG
    assert "prog.py:4 in wait: time.sleep(1000)" in result.explain()


def test_native_deadlock_names_the_python_line(tmp_path: Path) -> None:
    # PyEval_RestoreThread semantics aside: a libc mutex taken twice, without letting go of the interpreter lock.
    source = """
    import ctypes
    libc = ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)
    """
    result = run(tmp_path, source, idle_limit=2)
    assert result.outcome is Outcome.HANG
    assert "prog.py:6" in result.explain()


def test_hang_in_a_child_process(tmp_path: Path) -> None:
    source = """
    import subprocess, sys
    subprocess.run([sys.executable, "child.py"])
    """
    write(tmp_path, "import threading\nthreading.Event().wait()\n", "child.py")
    result = run(tmp_path, source, idle_limit=3)
    assert result.outcome is Outcome.HANG
    assert result.stack


def test_busy_loop_meets_the_time_limit_not_the_idle_limit(tmp_path: Path) -> None:
    source = """
    print("go")
    while True:
        pass
    """
    result = run(tmp_path, source, idle_limit=2, time_limit=4)
    assert result.outcome is Outcome.TIME_LIMIT
    assert "4 s" in result.explain()
    assert result.stack[-1].file == "prog.py"


@pytest.mark.parametrize("box", BOXES)
def test_program_that_ignores_sigterm_and_its_grandchildren(tmp_path: Path, box: str) -> None:
    mark = f"stubborn-{tmp_path.name}-{box}"
    source = f"""
    import signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN);"
    code += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(900)', '{mark}'],"
    code += "start_new_session=True); time.sleep(900)"
    subprocess.Popen([sys.executable, "-c", code, "{mark}"])
    time.sleep(900)
    """
    result = run(tmp_path, source, idle_limit=2, sandbox=box)
    assert result.outcome is Outcome.HANG
    assert processes_with(mark) == []


@pytest.mark.parametrize("box", BOXES)
def test_memory(tmp_path: Path, box: str) -> None:
    source = """
    import time
    blocks = []
    while True:
        blocks.append(bytearray(b"x" * (8 * 1024 * 1024)))
        time.sleep(0.01)
    """
    result = run(tmp_path, source, memory_limit=300 * MiB, sandbox=box)
    assert result.outcome is Outcome.MEMORY_LIMIT
    assert "300 MiB" in result.explain()


def test_memory_of_children_together_but_shared_pages_once(tmp_path: Path) -> None:
    source = """
    import os, time
    block = bytearray(b"x" * (100 * 1024 * 1024))
    for _ in range(5):
        if os.fork() == 0:
            time.sleep(1.5)
            os._exit(0)
    time.sleep(1.5)
    for _ in range(5):
        os.wait()
    """
    assert run(tmp_path, source, memory_limit=400 * MiB).outcome is Outcome.COMPLETED
    grown = source.replace("time.sleep(1.5)\n            os", "own = bytearray(block); time.sleep(60)\n            os")
    assert run(tmp_path, grown, memory_limit=400 * MiB).outcome is Outcome.MEMORY_LIMIT


@pytest.mark.parametrize("folder", [".", "os.environ['TMPDIR']"])
def test_disk(tmp_path: Path, folder: str) -> None:
    place = folder if folder != "." else "'.'"
    source = f"""
    import os, time
    for i in range(1000):
        open({place} + f"/f{{i}}", "wb").write(b"x" * (4 * 1024 * 1024))
        time.sleep(0.01)
    """
    result = run(tmp_path, source, disk_limit=40 * MiB)
    assert result.outcome is Outcome.DISK_LIMIT
    assert "40 MiB" in result.explain()


def test_disk_with_one_huge_file_written_at_once(tmp_path: Path) -> None:
    source = """
    block = b"x" * (16 * 1024 * 1024)
    with open("big", "wb", buffering=0) as file:
        for _ in range(300):
            file.write(block)
    """
    result = run(tmp_path, source, disk_limit=40 * MiB)
    assert result.outcome is Outcome.DISK_LIMIT
    assert (tmp_path / "big").stat().st_size < 1000 * MiB


def test_a_gigabyte_of_output_costs_neither_memory_nor_disk(tmp_path: Path) -> None:
    source = """
    import os
    block = b"x" * 99 + b"\\n"
    block *= 10000
    for _ in range(1100):
        os.write(1, block)
    """
    before = _peak()
    result = run(tmp_path, source, log=tmp_path / "log")
    assert result.outcome is Outcome.COMPLETED
    assert result.output_bytes == 1_100_000_000
    assert (tmp_path / "log").stat().st_size < 65 * MiB
    assert _peak() - before < 100 * MiB
    assert any("1100000000 bytes" in note for note in result.notes)


def test_output_far_beyond_its_limit_ends_the_program(tmp_path: Path) -> None:
    shown: list[str] = []
    result = run(
        tmp_path,
        "while True: print('spam' * 20)",
        output_limit=100_000,
        log=tmp_path / "log",
        on_output=shown.append,
    )
    assert result.outcome is Outcome.OUTPUT_LIMIT
    assert "97.66 KiB" in result.explain()
    assert (tmp_path / "log").stat().st_size < 200_000
    assert sum(map(len, shown)) <= 100_100


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


LAUNCHER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from torchtpu.launch import LaunchSpec, launch
result = launch(LaunchSpec(["python", "prog.py"], Path({folder!r}), device="cpu", sandbox={box!r}))
print(result.outcome, flush=True)
"""
LONG_LIVED = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)", {mark!r}], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp(sys.executable, [sys.executable, "-c", "import time; time.sleep(900)", {mark!r}])
    os._exit(0)
time.sleep(900)
"""


def _start_launcher(folder: Path, box: str, mark: str) -> subprocess.Popen[str]:
    write(folder, LONG_LIVED.format(mark=mark))
    root = str(Path(__file__).resolve().parents[2])
    source = textwrap.dedent(LAUNCHER.format(root=root, folder=str(folder), box=box))
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("box", BOXES)
def test_killing_the_launcher_ends_everything(tmp_path: Path, box: str) -> None:
    mark = f"orphan-{os.getpid()}-{tmp_path.name}-{box}"
    launcher = _start_launcher(tmp_path, box, mark)
    assert wait_until(lambda: len(processes_with(mark)) == 2)
    launcher.kill()
    launcher.wait()
    assert wait_until(lambda: processes_with(mark) == [] and processes_with(str(tmp_path)) == [])


@pytest.mark.parametrize("box", BOXES)
def test_ctrl_c(tmp_path: Path, box: str) -> None:
    mark = f"ctrlc-{os.getpid()}-{tmp_path.name}-{box}"
    launcher = _start_launcher(tmp_path, box, mark)
    assert wait_until(lambda: len(processes_with(mark)) == 2)
    os.kill(launcher.pid, signal.SIGINT)
    output, _ = launcher.communicate(timeout=60)
    assert output == "interrupted\n"
    assert processes_with(mark) == []


def test_killing_the_warden_ends_everything(tmp_path: Path) -> None:
    mark = f"warden-{os.getpid()}-{tmp_path.name}"
    launcher = _start_launcher(tmp_path, "off", mark)
    assert wait_until(lambda: len(processes_with(mark)) == 2)
    (warden,) = [pid for pid in processes_with("warden.py") if pid in _children(launcher.pid)]
    os.kill(warden, signal.SIGKILL)
    output, _ = launcher.communicate(timeout=60)
    assert output == "abort\n"
    assert processes_with(mark) == []


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_folders_of_killed_launchers_are_removed_by_the_next(tmp_path: Path) -> None:
    mark = f"killed-{os.getpid()}-{tmp_path.name}"
    launcher = _start_launcher(tmp_path, "off", mark)
    assert wait_until(lambda: len(processes_with(mark)) == 2)
    (pid, *_) = processes_with(mark)
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (folder,) = [Path(os.fsdecode(v.partition(b"=")[2])) for v in variables if v.startswith(b"TMPDIR=")]
    assert folder.exists()
    run(tmp_path, "print('another run leaves it alone')", argv=["python", "-c", "pass"])
    assert folder.exists()
    launcher.kill()
    launcher.wait()
    assert wait_until(lambda: processes_with(mark) == [])
    run(tmp_path, argv=["python", "-c", "pass"])
    assert not folder.parent.exists()


@pytest.mark.skipif(sandbox.probe() is not None, reason="no bubblewrap")
def test_shared_memory_is_bounded_in_the_sandbox(tmp_path: Path) -> None:
    source = """
    with open("/dev/shm/x", "wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x" * (8 * 1024 * 1024))
    """
    result = run(tmp_path, source, sandbox="on", memory_limit=200 * MiB)
    assert result.outcome is Outcome.EXCEPTION
    assert "No space left on device" in result.explain()
