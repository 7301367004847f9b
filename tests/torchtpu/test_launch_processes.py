"""Every Python program of a workload reports, however it is started and however it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.torchtpu.launching import run, write
from torchtpu import device
from torchtpu.events import Event, EventReader
from torchtpu.inject import children, writer
from torchtpu.launch import Outcome
from torchtpu.launcher.record import Record

TRAIN = """
import os, sys, torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(int(os.environ.get("STEPS", "3"))):
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
"""


def devices(seen: list[Event]) -> list[int]:
    return [event.pid for event in seen if event.event == "device"]


def programs(seen: list[Event]) -> list[str]:
    """Returns the last words of the command lines that reported as programs."""
    return [event.data["argv"][-1] for event in seen if event.event == "start" and event.data["role"] == "program"]


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run([sys.executable, 'child.py'], env={'PATH': os.environ['PATH']}, check=True)",
        "subprocess.run([sys.executable, 'child.py'], env={**os.environ, 'PYTHONPATH': 'src'}, check=True)",
        "os.environ['PYTHONPATH'] = 'src'; subprocess.run([sys.executable, 'child.py'], check=True)",
        "os.environ.clear(); os.execv(sys.executable, [sys.executable, 'child.py'])",
        "os.execve(sys.executable, [sys.executable, 'child.py'], {'PYTHONPATH': 'src'})",
        "os.execle(sys.executable, sys.executable, 'child.py', {})",
        "os.environ['PYTHONPATH'] = 'src'; assert os.system(f'{sys.executable} child.py') == 0",
    ],
)
def test_child_with_an_environment_of_its_own(tmp_path: Path, start: str) -> None:
    write(tmp_path, "", "child.py")
    seen: list[Event] = []
    result = run(tmp_path, f"import os, subprocess, sys\n{start}\n", on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert programs(seen) == ["prog.py", "child.py"]


def test_children_of_a_shell_script(tmp_path: Path) -> None:
    lines = [
        "PYTHONPATH=src python train.py",
        "env -i $(command -v python3) child.py",
        "PYTHONPATH=src torchrun --standalone --nproc-per-node 1 train.py",
        "exec python child.py",
    ]
    write(tmp_path, TRAIN, "train.py")
    write(tmp_path, "", "child.py")
    write(tmp_path, "\n".join(["set -e", *lines, ""]), "train.sh")
    seen: list[Event] = []
    result = run(tmp_path, argv=["sh", "train.sh"], on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert programs(seen) == ["train.py", "child.py", "train.py", "child.py"]
    assert len(devices(seen)) == 2


def test_values_a_program_sets_itself_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_folder", "/somewhere")
    monkeypatch.setattr(children, "_kept", {"TPU_LIBRARY_PATH": "ours", "TORCHTPU_EVENTS": "/somewhere"})
    environ = {"TPU_LIBRARY_PATH": "theirs", "PYTHONPATH": "src"}
    children.keep(environ)
    assert environ["TPU_LIBRARY_PATH"] == "theirs"
    assert environ["TORCHTPU_EVENTS"] == "/somewhere"
    first, second = environ["PYTHONPATH"].split(os.pathsep)
    assert (Path(first) / "torchtpu" / "device.py").is_file()
    assert second == "src"
    before = dict(environ)
    children.keep(environ)
    assert environ == before


FORKSERVER = """
import multiprocessing as mp, torch
from torch.utils.data import DataLoader
def train(steps):
    import torchtpu.device
    assert torchtpu.device._brought_up is not None
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
    if steps == 4:
        raise ValueError("four steps are too many")
if __name__ == "__main__":
    context = mp.get_context("forkserver")
    context.set_forkserver_preload({preload})
    workers = [context.Process(target=train, args=(steps,)) for steps in {steps}]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    batches = DataLoader(list(range(8)), num_workers=2, multiprocessing_context="forkserver")
    print(sum(int(batch) for batch in batches))
    raise SystemExit(any(worker.exitcode for worker in workers))
"""


@pytest.mark.parametrize("preload", [[], ["torch"]])
def test_children_of_a_fork_server(tmp_path: Path, preload: list[str]) -> None:
    seen: list[Event] = []
    result = run(tmp_path, FORKSERVER.format(preload=preload, steps=[2, 3]), on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.output_tail.strip().endswith("28")
    assert result.steps == 5
    # The program itself and two trainings; not the server, nor the loader's workers.
    assert len(set(devices(seen))) == len(devices(seen)) == 3


def test_exception_in_a_child_of_a_fork_server(tmp_path: Path) -> None:
    result = run(tmp_path, FORKSERVER.format(preload=["torch"], steps=[4]))
    assert result.outcome is Outcome.EXCEPTION
    assert "four steps are too many" in result.explain()


def test_program_that_executes_another_in_its_place(tmp_path: Path) -> None:
    again = """
if os.environ.pop("AGAIN", ""):
    os.environ["STEPS"] = "2"
    os.execv(sys.executable, [sys.executable, sys.argv[0]])
"""
    result = run(tmp_path, TRAIN + again, env={"AGAIN": "1", "STEPS": "300"})
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 302


def test_program_that_leaves_without_its_end(tmp_path: Path) -> None:
    result = run(tmp_path, TRAIN + "os._exit(0)\n", env={"STEPS": "300"})
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 300


def test_program_that_clears_its_environment(tmp_path: Path) -> None:
    result = run(tmp_path, "import os\nos.environ.clear()\n" + TRAIN)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.device is not None
    assert result.steps == 3


FORK = """
import os, torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def steps(count):
    for step in range(count):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
steps(150)
child = os.fork()
if child == 0:
    steps(2)
    raise SystemExit(0)
os.waitpid(child, 0)
steps(1)
"""


def test_forked_child_counts_its_own_steps_and_losses(tmp_path: Path) -> None:
    result = run(tmp_path, FORK)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 153
    assert len(result.losses) == 153


def event(name: str, **fields: object) -> bytes:
    return json.dumps({"event": name, "time": 1.0, "pid": 7, "rank": None, **fields}).encode()


def test_event_file_longer_than_one_read(tmp_path: Path) -> None:
    lines = [event("other", text="x" * 4000)] * 900 + [event("device")]
    (tmp_path / "7.jsonl").write_bytes(b"\n".join([*lines, b""]))
    assert [found.event for found in EventReader(tmp_path).read()] == ["other"] * 900 + ["device"]


def test_line_that_was_cut_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_folder", str(tmp_path))
    path = tmp_path / f"{os.getpid()}.jsonl"
    path.write_bytes(event("start")[:20])
    writer.write("device", kind="cpu")
    reader = EventReader(tmp_path)
    assert [found.event for found in reader.read()] == ["device"]
    with path.open("ab") as file:
        file.write(event("step")[:30])
    assert list(reader.read()) == []
    with path.open("ab") as file:
        file.write(event("step")[30:] + b"\n")
    assert [found.event for found in reader.read()] == ["step"]


def test_what_could_not_be_written_is_written_with_the_next_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "events"
    monkeypatch.setattr(writer, "_folder", str(folder))
    writer.write("device", kind="cpu")
    writer.write("warning", message="of no great weight")
    folder.mkdir()
    writer.write("end")
    assert [found.event for found in EventReader(folder).read()] == ["device", "end"]


def test_reader_does_not_wait_for_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.jsonl")
    (tmp_path / "2.jsonl").mkdir()
    (tmp_path / "3.jsonl").write_bytes(event("end") + b"\n")
    assert [found.event for found in EventReader(tmp_path).read()] == ["end"]


def test_two_programs_of_one_number_both_count(tmp_path: Path) -> None:
    record = Record(tmp_path)
    for steps in (5, 3):
        record.add(Event("start", 1.0, 7, None, {"role": "program"}))
        record.add(Event("step", 2.0, 7, None, {"step": steps, "device_steps": steps, "losses": [], "device_ops": 10}))
    assert (record.steps, record.device_steps, record.device_ops) == (8, 8, 20)


def test_device_that_comes_up_half_ends_the_run(tmp_path: Path) -> None:
    try:
        device.choose("simulated")
    except device.DeviceError as error:
        pytest.skip(str(error))
    no_plugin = tmp_path / "plugin.so"
    no_plugin.write_bytes(b"this is no library")
    source = "import time, torch\ntime.sleep(600)\n"
    result = run(tmp_path, source, device="simulated", plugin=no_plugin)
    assert result.outcome is Outcome.NOT_STARTED
    assert "did not come up whole (OSError" in result.explain()
    assert result.device is None


def test_run_of_an_unknown_device_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "print(1)\n", argv=["python", "-I", "prog.py"])
    assert result.outcome is Outcome.COMPLETED
    assert "Which device it ran on is not known (no Python process reported" in result.explain()


def test_a_rank_that_failed_is_named_where_the_others_wait_for_it(tmp_path: Path) -> None:
    write(tmp_path, "import torch, os\nopen(f'shard{os.environ[\"RANK\"]}')\n", "rank.py")
    write(tmp_path, "import time\nwhile True:\n    time.sleep(1)\n", "waiting.py")
    result = run(tmp_path, argv=["sh", "-c", "RANK=1 python rank.py; RANK=0 python waiting.py"], time_limit=20)
    assert result.outcome is Outcome.TIME_LIMIT
    assert "an exception ended rank 1, at rank.py:2" in result.explain()
    assert "No such file or directory: 'shard1'" in result.explain()
