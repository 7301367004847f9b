"""The doctor says what is there, what does not fit and how to repair it, and never raises."""

import subprocess
import sys

import pytest

from torchtpu import doctor, hardware, packages


def by_name(checks):
    return {check.name: check for check in checks}


def have(tmp_path, requires=(), **versions):
    return packages.Installed(tmp_path / "python", "3.11.9", versions, {}, tuple(requires))


@pytest.mark.slow
def test_this_interpreter_adds_two_tensors():
    found = by_name(doctor.examine())
    assert not [check for check in found.values() if check.status == "fail"]
    assert "1.5 + 2.5 = 4.0 on tpu:0" in found["probe"].detail
    assert found["torch_tpu"].detail == "0.2.0"
    assert "simulated" in found["device"].detail or "hardware" in found["device"].detail
    assert "SHA-256" in found["plugin"].detail and "0.115" in found["pjrt"].detail


def test_an_interpreter_without_torch(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = tmp_path / "bare" / "bin" / "python"
    found = by_name(doctor.examine(bare))
    assert found["torch"].status == "fail" and f"{bare} -m pip install 'torch>=2.11,<=2.15'" in found["torch"].repair
    assert found["torch_tpu"].status == "fail"
    assert found["probe"].status == "fail" and "not run" in found["probe"].detail
    assert found["plugin"].status == "ok"


def test_an_interpreter_that_is_not_one(tmp_path):
    (check,) = doctor.examine(tmp_path / "absent")
    assert check.status == "fail" and "--python" in check.repair


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("2.10.1", "fail"),
        ("2.11.0+cpu", "ok"),
        ("2.15.2", "ok"),
        ("2.16.0", "fail"),
        ("2.13.0+cu130", "warn"),
        ("2.9.0", "fail"),
    ],
)
def test_torch_must_be_in_the_range_torch_tpu_declares(tmp_path, version, status):
    check = doctor._torch(have(tmp_path, ["torch<=2.15,>=2.11"], torch=version))
    assert check.status == status and version in check.detail
    assert bool(check.repair) == (status != "ok")


def test_the_declared_range_wins_over_the_known_one(tmp_path):
    newer = have(tmp_path, ["torch>=2.16,<=2.17"], torch="2.15.0")
    assert doctor._torch(newer).status == "fail"


@pytest.mark.parametrize(
    ("versions", "status"),
    [
        ({"jax": "0.10.2", "jaxlib": "0.10.2"}, "ok"),
        ({"jax": "0.10.2", "jaxlib": "0.9.0"}, "fail"),
        ({"jax": "0.10.2"}, "warn"),
    ],
)
def test_jax_and_jaxlib_belong_together(tmp_path, versions, status):
    assert doctor._jax(have(tmp_path, **versions)).status == status


def test_old_libtpu_and_python(tmp_path):
    assert doctor._libtpu(have(tmp_path, libtpu="0.0.49")).status == "warn"
    assert doctor._libtpu(have(tmp_path, libtpu="0.0.52")).status == "ok"
    old = packages.Installed(tmp_path, "3.9.2", {}, {}, ())
    assert doctor._python(old).status == "fail"


def test_flags_of_another_device(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", "--xla_tpu_enable_latency_hiding_scheduler=true")
    check = doctor._flags(have(tmp_path))
    assert check.status == "warn" and "LIBTPU_INIT_ARGS" in check.repair


def test_a_probe_that_hangs_is_ended(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    stuck = packages.Installed(script, "3.11.9", {}, {}, ())
    check = doctor._probe(stuck, doctor.device.choose("simulated"), seconds=1)
    assert check.status == "fail" and "within 1 s" in check.detail


@pytest.mark.parametrize(
    ("installed", "product", "variables", "status"),
    [
        (True, "Standard PC", {}, "warn"),
        (True, "Standard PC", {"TPU_SKIP_MDS_QUERY": "1"}, "ok"),
        (True, "Standard PC", {"TPU_SKIP_MDS_QUERY": "0"}, "warn"),
        (True, "Standard PC", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "ok"),
        (True, "Standard PC", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}, "warn"),
        (True, "Google Compute Engine", {}, "ok"),
        (False, "Standard PC", {}, "ok"),
    ],
)
def test_waiting_for_a_metadata_server_that_is_not_there(tmp_path, monkeypatch, installed, product, variables, status):
    for name in ("TPU_SKIP_MDS_QUERY", "TORCH_DEVICE_BACKEND_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "product").write_text(f"{product}\n")
    monkeypatch.setattr(hardware, "PRODUCT", tmp_path / "product")
    monkeypatch.setattr(hardware, "find_chips", lambda: hardware.Chips(None, 0, 0))
    check = doctor._metadata(have(tmp_path, **({"torch_tpu": "0.2.0"} if installed else {})))
    assert check.status == status
    assert ("TPU_SKIP_MDS_QUERY=1" in check.repair) == (status == "warn")
