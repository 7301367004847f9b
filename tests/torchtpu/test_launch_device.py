"""Programs on the simulated device under the launcher: what they print, count and die of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torchtpu.launching import run
from torchtpu import device
from torchtpu.launch import Outcome


def _missing() -> str | None:
    try:
        device.choose("simulated")
    except device.DeviceError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_missing() is not None, reason=_missing() or "")

TRAIN = """
import torch
import torch_tpu._internal.execution_mode as mode
device = torch.accelerator.current_accelerator()
torch.manual_seed(0)
x, y = torch.randn(8, 4).to(device), torch.randn(8, 1).to(device)
net = torch.nn.Linear(4, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
mode.enable_cpu_fallback = True
print(torch.median(x).device)
for step in range(1000):
    loss = ((net(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_training_on_the_device(tmp_path: Path) -> None:
    shown: list[str] = []
    result = run(tmp_path, TRAIN, device="simulated", sandbox="auto", max_steps=5, on_output=shown.append)
    assert result.outcome is Outcome.STOPPED_AT_STEPS, result.output_tail
    assert result.exit_code == 0
    assert result.device is not None
    assert result.device.kind == "simulated"
    assert (result.steps, result.device_steps) == (5, 5)
    assert result.losses[-1] < result.losses[0]
    assert result.device_ops is not None
    assert result.device_ops > 5
    # Nothing of the backend's own is shown; its fallback to the CPU is told all the same.
    assert shown == ["tpu:0\n"]
    assert [(w.kind, w.category) for w in result.warnings] == [("cpu-fallback", "native")]
    assert "aten::median" in result.warnings[0].message


def test_failed_check_of_the_backend(tmp_path: Path) -> None:
    source = """
    import torch
    def first():
        return (torch.ones(3, device="tpu") + 1).cpu()
    first()
    """
    shown: list[str] = []
    result = run(
        tmp_path, source, device="simulated", env={"XLA_FLAGS": "--xla_no_such_flag=1"}, on_output=shown.append
    )
    assert result.outcome is Outcome.ABORT
    assert "Unknown flag in XLA_FLAGS: --xla_no_such_flag=1" in result.explain()
    assert shown == []


def test_program_that_leaves_the_device_alone(tmp_path: Path) -> None:
    source = """
    import torch
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
    """
    result = run(tmp_path, source, device="simulated")
    assert result.outcome is Outcome.COMPLETED
    assert (result.steps, result.device_steps) == (3, 0)
    assert "3 of 3 steps trained parameters that were not on the TPU" in result.explain()


@pytest.mark.slow
def test_two_ranks_in_the_sandbox(tmp_path: Path) -> None:
    source = """
    import torch, torch.distributed as dist
    dist.init_process_group("tpu_dist")
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1).to("tpu")
    net = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(1000):
        loss = net(torch.ones(1, 2, device="tpu") * (dist.get_rank() + 1)).sum()
        opt.zero_grad(); loss.backward(); opt.step()
    """
    argv = ["torchrun", "--standalone", "--nproc-per-node", "2", "prog.py"]
    result = run(tmp_path, source, argv=argv, device="simulated", sandbox="auto", max_steps=3, time_limit=240)
    assert result.outcome is Outcome.STOPPED_AT_STEPS, result.output_tail
    assert (result.steps, result.device_steps) == (3, 3)


def test_a_program_may_import_the_backend_before_torch(tmp_path: Path) -> None:
    source = "import torch_tpu\nimport torch\nprint((torch.ones(2, device='tpu') * 3).sum().item())\n"
    result = run(tmp_path, source, device="simulated", sandbox="auto")
    assert result.outcome is Outcome.COMPLETED, result.explain()
    assert result.device is not None
    assert result.device.kind == "simulated"
    assert "6.0" in result.output_tail
