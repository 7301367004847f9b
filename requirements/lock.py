"""Remakes the lock files from pyproject.toml: `python requirements/lock.py [--upgrade] [--cuda]`.

pip resolves, since it takes what lies on this machine, such as the CPU build of torch. (pip-compile asks the index
alone: it downloads the CUDA build of torch with its libraries, 3 GB, and every file of every package for its hash.)

Versions stay as they are unless `--upgrade` is given or pyproject.toml no longer allows them. torch has two builds of
one version: the index's default, for CUDA, and the CPU build of PyTorch's own index. Both may be installed from the
lock, so it carries the hashes of both, and each has a file of its own: `torch-cpu.txt`, which `make setup` tries first
(between the two pip would take the index's, whose hash it knows beforehand), and `cuda.txt`, with what only the CUDA
build needs. That one is made anew with `--cuda`, which is needed when TORCH changes and downloads those 3 GB.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

HERE = Path(__file__).resolve().parent
PLATFORM = "# Locked for Python 3.11 on Linux x86-64. Made by `make lock`; see CONTRIBUTING.md.\n"
TORCH = "torch==2.13.0"
TORCH_CPU_HASH = "--hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
ONLY_FOR_CUDA = ("nvidia-", "cuda-", "triton")
# pip is in every environment, and pip's own hash check would refuse to pin it.
LEFT_OUT = ("pip", "wheel")
HEADS = {
    "dev": "# Everything development and CI install, with hashes (extras: tpu, dev).\n"
    "# torch: the first hash is the CPU build (2.13.0+cpu), the others are the index's default builds.\n",
    "torch-cpu": "# The CPU build of torch, for `make setup` to try before requirements/dev.txt.\n",
    "cuda": "# What the default Linux build of torch needs beside requirements/dev.txt; "
    "the CPU build needs none of it.\n",
    "wheelhouse": "# Wheels for tests/test_wheel.py: the base dependencies and `openai-agents`, which owns the name "
    "`agents`.\n",
}

Pins = dict[str, list[str]]


def main() -> None:
    """Resolve and write the files."""
    options = set(sys.argv[1:])
    if unknown := options - {"--upgrade", "--cuda"}:
        raise SystemExit(f"unknown options: {' '.join(sorted(unknown))}\n{__doc__}")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    base, extras = project["dependencies"], project["optional-dependencies"]
    old = {name: pins((HERE / f"{name}.txt").read_text()) for name in HEADS}
    keep = "--upgrade" not in options
    same_torch = old["dev"]["torch"][0] == TORCH
    if not same_torch and "--cuda" not in options:
        raise SystemExit(f"{TORCH} is not in the lock yet: add --cuda, which downloads its CUDA build (3 GB)")
    if "--cuda" in options:
        known = old["dev"] | (old["cuda"] if same_torch else {})
        default = resolve([TORCH], known, keep, default_torch=True)
        old["dev"]["torch"] = [TORCH, TORCH_CPU_HASH, *default["torch"][1:]]
        write("cuda", {name: pin for name, pin in default.items() if name.startswith(ONLY_FOR_CUDA)})
    dev = resolve([*base, *extras["tpu"], *extras["dev"], TORCH], old["dev"], keep)
    write("dev", {n: pin for n, pin in dev.items() if not n.startswith(ONLY_FOR_CUDA) and n not in LEFT_OUT})
    write("torch-cpu", {"torch": [f"{TORCH}+cpu", TORCH_CPU_HASH]})
    write("wheelhouse", resolve([*base, "openai-agents>=0.24"], old["wheelhouse"], keep))


def resolve(requirements: list[str], old: Pins, keep: bool, default_torch: bool = False) -> Pins:
    """Let pip choose.

    Args:
        requirements: What is asked for.
        old: The pins so far.
        keep: Whether their versions stay.
        default_torch: Whether the index's builds are wanted, whatever wheels lie on this machine.
    """
    print(f"resolving {len(requirements)} requirements with pip ...", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        limits, report = Path(scratch) / "limits.txt", Path(scratch) / "report.json"
        limits.write_text("".join(f"{pin[0]}\n" for name, pin in old.items() if keep and name != "torch"))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary=:all:", "--constraint", str(limits), "--report", str(report), *requirements]
        environment = dict(os.environ)
        if default_torch:
            environment = {k: v for k, v in environment.items() if k != "PIP_FIND_LINKS"}
            environment["PIP_CONFIG_FILE"] = os.devnull
        subprocess.run(command, check=True, cwd=scratch, env=environment)
        chosen = json.loads(report.read_text())["install"]
    return dict(pin(item, old) for item in chosen)


def pin(item: Mapping[str, Any], old: Pins) -> tuple[str, list[str]]:
    """A chosen file's name and pin; the hashes known of the same version stay with it."""
    name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
    version = item["metadata"]["version"].partition("+")[0]
    known = old.get(name, [""])
    kept = known[1:] if known[0] == f"{name}=={version}" else []
    found = f"--hash=sha256:{digest(item['download_info'])}"
    return name, [f"{name}=={version}", *kept, *([] if found in kept else [found])]


def digest(info: Mapping[str, Any]) -> str:
    """The SHA-256 of a file that pip has chosen; of one on this machine pip may not tell it."""
    told = info["archive_info"].get("hashes", {}).get("sha256")
    return told or hashlib.sha256(Path(unquote(urlparse(info["url"]).path)).read_bytes()).hexdigest()


def pins(text: str) -> Pins:
    """Each package's pin and hashes, by name."""
    found: Pins = {}
    lines: list[str] = []
    for line in text.splitlines():
        part = line.strip().rstrip("\\").strip()
        if part.startswith("--hash="):
            lines.append(part)
        elif "==" in part and not part.startswith("#"):
            lines = found.setdefault(part.partition("==")[0], [part])
    return found


def write(name: str, chosen: Pins) -> None:
    """Write one lock file."""
    body = "".join(" \\\n    ".join(chosen[package]) + "\n" for package in sorted(chosen))
    (HERE / f"{name}.txt").write_text(HEADS[name] + PLATFORM + body)
    print(f"requirements/{name}.txt: {len(chosen)} packages")


if __name__ == "__main__":
    main()
