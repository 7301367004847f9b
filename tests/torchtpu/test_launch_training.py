"""What the injected code sees of real training programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torchtpu.launching import run, write
from torchtpu.events import Event
from torchtpu.launch import Outcome

pytest.importorskip("torch")

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
def make():
    net = nn.Linear(4, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.01)
"""
LOOP = (
    SETUP
    + """
net, opt = make()
for step in range(10):
    loss = ((net(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
print("finished")
"""
)


def _printed(text: str) -> list[float]:
    return [float(line.split()[1]) for line in text.splitlines() if line[:1].isdigit()]


def test_steps_and_losses(tmp_path: Path) -> None:
    seen: list[Event] = []
    result = run(tmp_path, LOOP, on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED
    assert (result.steps, result.device_steps) == (10, 0)
    assert result.losses == pytest.approx(_printed(result.output_tail))
    assert result.device is not None
    assert result.device.kind == "cpu"
    assert "10 optimizer steps, loss" in result.explain()
    assert {"start", "armed", "device", "step", "end"} <= {event.event for event in seen}
    assert len({event.pid for event in seen}) == 1
    assert all(isinstance(event, Event) for event in seen)


def test_max_steps_stops_cleanly(tmp_path: Path) -> None:
    source = "import atexit\natexit.register(print, 'at exit')\n" + LOOP
    result = run(tmp_path, source.replace("range(10)", "range(10**9)"), max_steps=4)
    assert result.outcome is Outcome.STOPPED_AT_STEPS
    assert result.exit_code == 0
    assert result.steps == len(result.losses) == 4
    assert result.output_tail.endswith("at exit\n")
    assert "finished" not in result.output_tail


def test_program_that_catches_everything_is_ended_all_the_same(tmp_path: Path) -> None:
    source = (
        SETUP
        + """
net, opt = make()
while True:
    try:
        opt.zero_grad()
        net(x).mean().backward()
        opt.step()
    except BaseException as error:
        print("caught", type(error).__name__)
        while True:
            pass
"""
    )
    result = run(tmp_path, source, max_steps=2, grace=1.5)
    assert result.outcome is Outcome.STOPPED_AT_STEPS
    assert result.steps == 2
    assert "caught StepsReached" in result.output_tail
    assert "had to be killed" in result.explain()


@pytest.mark.parametrize("limit", [1, 3])
def test_two_optimizers_make_one_step_an_iteration(tmp_path: Path, limit: int) -> None:
    source = (
        SETUP
        + """
(d, opt_d), (g, opt_g) = make(), make()
for step in range(100):
    opt_d.zero_grad(); d(x).mean().backward(); opt_d.step()
    print("d", step)
    opt_g.zero_grad()
    loss = g(x).pow(2).mean()
    loss.backward()
    print("g", step)
    opt_g.step()
"""
    )
    result = run(tmp_path, source, max_steps=limit)
    assert result.outcome is Outcome.STOPPED_AT_STEPS
    assert result.steps == limit
    assert result.output_tail.splitlines()[-1] == f"g {limit - 1}"


def test_lbfgs_closure_makes_one_step(tmp_path: Path) -> None:
    source = (
        SETUP
        + """
net = nn.Linear(4, 1)
opt = torch.optim.LBFGS(net.parameters(), max_iter=5)
def closure():
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss
for _ in range(3):
    opt.step(closure)
"""
    )
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED
    assert result.steps == 3
    assert len(result.losses) == 3


def test_scaled_loss_is_reported_unscaled_and_skipped_steps_do_not_count(tmp_path: Path) -> None:
    source = (
        SETUP
        + """
net, opt = make()
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(3):
    loss = ((net(x) - y) ** 2).mean()
    if step == 1:
        loss = loss * float("inf")
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    print(step, loss.item())
"""
    )
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    printed = _printed(result.output_tail)
    assert result.steps == 2
    assert result.losses == pytest.approx([printed[0], printed[2]])


def test_recording_changes_no_number(tmp_path: Path) -> None:
    with_events = run(tmp_path, LOOP).output_tail
    without = run(tmp_path, LOOP, argv=["python", "-E", "prog.py"])
    assert with_events == without.output_tail
    assert without.steps == 0
    assert any("no Python process reported" in note for note in without.notes)


def test_many_steps_keep_the_first_and_last_losses(tmp_path: Path) -> None:
    source = LOOP.replace("range(10)", "range(450)")
    result = run(tmp_path, source)
    assert result.steps == 450
    assert len(result.losses) == 200
    printed = _printed(result.output_tail)
    assert len(printed) > 100
    assert result.losses[100:] == pytest.approx(printed[-100:])


def test_compiled_training_step_still_counts(tmp_path: Path) -> None:
    source = (
        SETUP
        + """
net, opt = make()
def train():
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
train = torch.compile(train, backend="eager")
for step in range(4):
    print(step, train().item())
"""
    )
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 4


def test_exception_in_training_has_the_users_frames(tmp_path: Path) -> None:
    write(tmp_path, "import torch\ndef forward(a):\n    return torch.cat([a, torch.ones(3, 3)])\n", "net.py")
    source = SETUP + "import net\nnet.forward(x)\n"
    result = run(tmp_path, source)
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert [frame.file for frame in result.exception.frames] == ["prog.py", "net.py"]
    assert "net.py:3 in forward" in result.explain()


def test_silenced_amp_warning_is_seen_with_the_users_line(tmp_path: Path) -> None:
    source = """
    import warnings
    warnings.filterwarnings("ignore")
    import torch
    x = torch.ones(2, 2)
    with torch.autocast("cuda"):
        x @ x
    scaler = torch.amp.GradScaler("cuda")
    """
    result = run(tmp_path, source)
    assert result.outcome is Outcome.COMPLETED
    kinds = {(w.kind, w.file, w.line) for w in result.warnings}
    assert kinds == {("amp-disabled", "prog.py", 6), ("amp-disabled", "prog.py", 8)}
    assert result.output_tail == ""


def test_other_warnings(tmp_path: Path) -> None:
    source = """
    import warnings
    def old():
        warnings.warn("use new()", DeprecationWarning, stacklevel=2)
    old()
    warnings.warn("<TorchTpu/Correctness/> careful")
    warnings.warn("aten::x is not supported and will fall back to run on the CPU")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("kept to itself")
    print(len(caught))
    print("[W1130 14:00:00.123456789 Foo.cpp:12] Warning: from C++ (function f)")
    """
    shown: list[str] = []
    result = run(tmp_path, source, on_output=shown.append)
    found = {(w.kind, w.message.split()[0], w.line) for w in result.warnings}
    assert ("torchtpu", "<TorchTpu/Correctness/>", 6) in found
    assert ("cpu-fallback", "aten::x", 7) in found
    assert ("other", "use", 4) in found
    assert ("other", "from", None) in found
    assert "1\n" in shown
    assert not any("from C++" in line for line in shown)


def test_warnings_as_errors_stay_errors(tmp_path: Path) -> None:
    source = """
    import warnings
    warnings.simplefilter("error")
    import torch
    torch.autocast("cuda")
    """
    result = run(tmp_path, source)
    assert result.outcome is Outcome.EXCEPTION
    assert [w.kind for w in result.warnings] == ["amp-disabled"]


LOADER = """
import torch, sys, os
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        import torchtpu.device
        return torch.tensor([index, torchtpu.device._brought_up is not None, os.getpid()])
if __name__ == "__main__":
    import torchtpu.device
    assert torchtpu.device._brought_up is not None
    for method in ("fork", "spawn"):
        rows = torch.cat(list(DataLoader(Data(), num_workers=2, multiprocessing_context=method)))
        assert os.getpid() not in rows[:, 2].tolist()
        print(method, rows[:, 1].tolist())
"""


def test_spawned_loader_workers_bring_no_device_up(tmp_path: Path) -> None:
    seen: list[Event] = []
    result = run(tmp_path, LOADER, on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert "spawn [0, 0, 0, 0]" in result.output_tail
    assert len([event for event in seen if event.event == "device"]) == 1


SPAWN = """
import torch, torch.multiprocessing as mp
def train(rank, fail):
    import torchtpu.device
    assert torchtpu.device._brought_up is not None
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
    if rank == 1 and fail:
        raise ValueError("rank one fails")
if __name__ == "__main__":
    mp.spawn(train, args=({fail},), nprocs=2)
    print("joined")
"""


def test_spawned_training_has_its_device(tmp_path: Path) -> None:
    result = run(tmp_path, SPAWN.format(fail=False))
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 10  # two processes without a process group are two trainings


def test_spawned_training_is_stopped(tmp_path: Path) -> None:
    result = run(tmp_path, SPAWN.format(fail=False), max_steps=2)
    assert result.outcome is Outcome.STOPPED_AT_STEPS, result.output_tail
    assert result.steps == 4


def test_exception_in_a_spawned_process(tmp_path: Path) -> None:
    result = run(tmp_path, SPAWN.format(fail=True))
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert "rank one fails" in result.exception.message
    assert "prog.py:12 in train" in result.explain()


DISTRIBUTED = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = DistributedDataParallel(torch.nn.Linear(2, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    if step == 3 and rank == 1 and os.environ.get("FAIL"):
        {failure}
    loss = net(torch.ones(1, 2) * (rank + 1)).sum()
    opt.zero_grad(); loss.backward(); opt.step()
print("rank", rank, "ends")
dist.destroy_process_group()
"""
TORCHRUN = ["torchrun", "--standalone", "--nproc-per-node", "2", "prog.py"]


@pytest.mark.parametrize("box", ["off", "auto"])
def test_torchrun(tmp_path: Path, box: str) -> None:
    seen: list[Event] = []
    source = DISTRIBUTED.format(failure="pass")
    result = run(tmp_path, source, argv=TORCHRUN, sandbox=box, on_event=seen.append)
    assert result.outcome is Outcome.COMPLETED, result.output_tail
    assert result.steps == 6
    assert len(result.losses) == 6
    assert sorted(event.rank for event in seen if event.event == "device") == [0, 1]
    roles = [event.data["role"] for event in seen if event.event == "start"]
    assert roles.count("launcher") == 1


def test_torchrun_is_stopped(tmp_path: Path) -> None:
    result = run(tmp_path, DISTRIBUTED.format(failure="pass"), argv=TORCHRUN, max_steps=3)
    assert result.outcome is Outcome.STOPPED_AT_STEPS, result.output_tail
    assert result.steps == 3


def test_torchrun_names_the_rank_that_failed(tmp_path: Path) -> None:
    source = DISTRIBUTED.format(failure="raise RuntimeError('only rank one')")
    result = run(tmp_path, source, argv=TORCHRUN, env={"FAIL": "1"})
    assert result.outcome is Outcome.EXCEPTION
    assert result.exception is not None
    assert result.exception.rank == 1
    assert "only rank one" in result.explain()
    assert "prog.py:11" in result.explain()


def test_torchrun_names_the_signal_of_a_rank(tmp_path: Path) -> None:
    source = DISTRIBUTED.format(failure="os.abort()")
    result = run(tmp_path, source, argv=TORCHRUN, env={"FAIL": "1"})
    assert result.outcome is Outcome.ABORT
    assert result.signal == "SIGABRT"
    assert "prog.py:11" in result.explain()


def test_fault_in_the_injected_code_is_told_and_harms_nothing(tmp_path: Path) -> None:
    # TORCHTPU_DEVICE_INFO is what the device is brought up from; this one cannot be read.
    result = run(tmp_path, LOOP, env={"TORCHTPU_DEVICE_INFO": "not json", "TORCHTPU_MAX_STEPS": "many"})
    assert result.outcome is Outcome.COMPLETED
    assert "finished" in result.output_tail
    assert len([note for note in result.notes if "start-up code" in note]) == 2


def test_rank_that_hangs_below_torchrun(tmp_path: Path) -> None:
    source = DISTRIBUTED.format(failure="__import__('time').sleep(1000)")
    result = run(tmp_path, source, argv=TORCHRUN, env={"FAIL": "1"}, idle_limit=8)
    assert result.outcome is Outcome.HANG
    assert result.steps == 3
    assert result.stack[-1].file == "prog.py"


def test_error_in_a_loader_worker_is_told_by_its_own_words(tmp_path: Path) -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    class Data:
        def __len__(self):
            return 4
        def __getitem__(self, index):
            raise KeyError("no such sample")
    for batch in DataLoader(Data(), num_workers=1):
        pass
    """
    result = run(tmp_path, source)
    assert result.outcome is Outcome.EXCEPTION
    assert "KeyError: 'no such sample'" in result.explain()
    assert "prog.py:9" in result.explain()
