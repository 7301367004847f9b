"""Choosing a device: hardware where there is some, else the simulated one, and clear refusals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torchtpu.children import ROOT, python
from torchtpu import device, hardware
from torchtpu.simulator import flags
from torchtpu.simulator import plugin as plugins


def sysfs(root, *chips, vendor="0x1ae0"):
    """Lays out PCI devices the way the kernel does; a chip is (device id, exposed)."""
    pci, vfio = root / "devices", root / "vfio"
    pci.mkdir()
    vfio.mkdir()
    for number, (identity, exposed) in enumerate(chips):
        entry, group = pci / f"0000:00:0{number}.0", root / "groups" / str(number)
        entry.mkdir()
        group.mkdir(parents=True)
        (entry / "vendor").write_text(f"{vendor}\n")
        (entry / "device").write_text(f"{identity}\n")
        (entry / "iommu_group").symlink_to(group)
        if exposed:
            (vfio / str(number)).touch()
    return pci, vfio


def test_counts_the_chips_torch_tpu_would_count(tmp_path):
    pci, vfio = sysfs(tmp_path, ("0x006f", True), ("0x006f", True), ("0x006f", False), ("0xffff", True))
    assert hardware.find_chips(pci, vfio) == hardware.Chips("v6e", usable=2, present=3)


def test_other_vendors_and_no_bus_are_no_tpu(tmp_path):
    pci, vfio = sysfs(tmp_path, ("0x006f", True), vendor="0x10de")
    assert hardware.find_chips(pci, vfio) == hardware.Chips(None, 0, 0)
    assert hardware.find_chips(tmp_path / "absent", vfio).usable == 0


def test_knows_every_chip_the_installed_backend_knows():
    source = next(Path(p, "torch_tpu/_internal/utils/hardware.py") for p in sys.path if Path(p, "torch_tpu").is_dir())
    table = source.read_text().partition("_PCI_DEVICE_ID_TO_NAME")[2].partition("})")[0]
    known = {part.strip().strip('"') for line in table.splitlines() for part in line.split(":") if "0x" in part}
    assert known == set(hardware.GENERATIONS)


@pytest.mark.parametrize(("exposed", "kind"), [(True, "hardware"), (False, "simulated")])
def test_auto_prefers_hardware(tmp_path, monkeypatch, exposed, kind):
    pci, vfio = sysfs(tmp_path, ("0x0063", exposed))
    chips = hardware.find_chips(pci, vfio)
    monkeypatch.setattr(hardware, "find_chips", lambda: chips)
    info = device.choose()
    assert info.kind == kind
    assert ("1 TPU v5e chip(s) found" if exposed else "none exposed through VFIO") in info.why
    assert device.choose("simulated").kind == "simulated"
    assert device.choose("cpu").kind == "cpu"


def test_hardware_that_is_not_there_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(hardware, "find_chips", lambda: hardware.Chips(None, 0, 0))
    with pytest.raises(device.DeviceError, match="no TPU found") as caught:
        device.choose("hardware")
    assert "simulated" in caught.value.remedy


def test_choosing_imports_no_torch(tmp_path):
    code = "import sys; from torchtpu import device; device.choose(); print('torch' in sys.modules)"
    assert python("-c", code, cwd=tmp_path).stdout.strip() == "False"


def test_information_survives_the_environment():
    info = device.choose("simulated")
    variables = device.environment(info, "tpu")
    assert device.DeviceInfo.from_json(variables[device.INFO_VARIABLE]) == info
    assert variables["TPU_LIBRARY_PATH"] == info.plugin
    assert variables[device.NUMERICS_VARIABLE] == "tpu"
    assert "TPU_LIBRARY_PATH" not in device.environment(device.choose("cpu"))


def test_interpreter_without_torch_is_refused_with_the_command(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = tmp_path / "bare" / "bin" / "python"
    with pytest.raises(device.DeviceError, match="no torch and no torch_tpu") as caught:
        device.choose(python=bare)
    assert f"{bare} -m pip install torch torch_tpu" in caught.value.remedy


def test_interpreter_that_cannot_be_started(tmp_path):
    with pytest.raises(device.DeviceError, match="cannot be asked"):
        device.choose(python=tmp_path / "no-such-python")


def test_unknown_plugin_only_when_named(tmp_path):
    (tmp_path / plugins.FILE_NAME).write_bytes(b"something else")
    with pytest.raises(plugins.PluginError, match="unknown SHA-256"):
        plugins.find_plugin([tmp_path], environ={})
    named = plugins.find_plugin([], tmp_path / plugins.FILE_NAME, environ={})
    assert named.named and named.release is None
    by_variable = plugins.find_plugin([], environ={"TORCHTPU_PLUGIN": str(tmp_path / plugins.FILE_NAME)})
    assert by_variable == named


def test_no_plugin_and_wrong_names(tmp_path):
    with pytest.raises(plugins.PluginError, match="pip install lammps-jax-pjrt-cpu"):
        plugins.find_plugin([tmp_path], environ={})
    with pytest.raises(plugins.PluginError, match="is no file"):
        plugins.find_plugin([], tmp_path / "absent.so", environ={})


def test_installed_plugin_is_a_pinned_one():
    assert device.choose("simulated").plugin_sha256 in plugins.PINNED


@pytest.mark.parametrize(
    ("flag", "merged"),
    [
        ("", "--xla_disable_hlo_passes=associative-scan-rewriter"),
        ("--xla_dump_to=/x", "--xla_dump_to=/x --xla_disable_hlo_passes=associative-scan-rewriter"),
        (
            "--xla_disable_hlo_passes=a,b --v=1",
            "--v=1 --xla_disable_hlo_passes=a,b,associative-scan-rewriter",
        ),
    ],
)
def test_the_users_flags_stay(flag, merged):
    assert flags.merged(flag) == merged
    assert flags.merged(merged) == merged


PROGRAM = """
import os, sys
from torchtpu import device
info = device.bring_up()
assert device.bring_up() is info
import torch
assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1
assert torch.accelerator.current_accelerator().type == "tpu"
assert torch.tpu.get_device_properties(0).name == "TPU v5e"
data = torch.arange(6.0, device="tpu").reshape(2, 3)
assert data.device == torch.device("tpu:0")
assert (data @ data.t()).cumsum(0).cpu().tolist() == [[5.0, 14.0], [19.0, 64.0]]
print(info.kind)
"""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("", id="before torch"),
        pytest.param("import torch\n", id="after torch", marks=pytest.mark.slow),
        pytest.param(
            "import os; os.environ['XLA_FLAGS'] = '--xla_cpu_enable_fast_math=false'\n",
            id="with the user's XLA flags",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_bring_up(tmp_path, first):
    (tmp_path / "program.py").write_text(first + PROGRAM)
    # The second program finds torch_tpu loaded by torch itself, and with it libtpu.
    done = python(
        "-W", "ignore", "program.py", cwd=tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="1" if "torch" in first else "0"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "simulated"


@pytest.mark.slow
def test_bring_up_is_quiet_unless_asked(tmp_path):
    code = "from torchtpu import device; device.bring_up(); import torch; (torch.ones(2, device='tpu') + 1).cpu()"
    quiet = python("-c", code, cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    loud = python("-c", code, cwd=tmp_path, TORCHTPU_VERBOSE="1")
    assert "Successfully renamed PrivateUse1" in loud.stderr


def test_import_needs_only_the_standard_library(tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import torchtpu.device, torchtpu.doctor; print('fine')"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code, ROOT], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "fine", done.stderr
    assert not os.environ.get("TORCHTPU_DEVICE_INFO")


def test_a_program_that_is_no_interpreter(tmp_path):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    with pytest.raises(device.DeviceError, match="is no Python interpreter"):
        device.choose("auto", python=other)
