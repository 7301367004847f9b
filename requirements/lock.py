"""Remakes the lock files from pyproject.toml: `python requirements/lock.py [--upgrade]`; needs pip-tools.

Versions stay as they are unless `--upgrade` is given or pyproject.toml no longer allows them. torch has two builds of
one version: the index's default, for CUDA, and the CPU build of PyTorch's own index. Both may be installed from the
lock, so it carries the hashes of both, and what only the CUDA build needs is in a file of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
    "cuda": "# What the default Linux build of torch needs beside requirements/dev.txt; "
    "the CPU build needs none of it.\n",
    "wheelhouse": "# Wheels for tests/test_wheel.py: the base dependencies and `openai-agents`, which owns the name "
    "`agents`.\n",
}

Pins = dict[str, list[str]]


def main() -> None:
    """Resolve and write the three files."""
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    dev = resolve("dev", ["--extra", "tpu", "--extra", "dev", "pyproject.toml"], TORCH + "\n", upgrade)
    dev["torch"] = [TORCH, TORCH_CPU_HASH, *(line for line in dev["torch"][1:] if line != TORCH_CPU_HASH)]
    write("cuda", {name: pin for name, pin in dev.items() if name.startswith(ONLY_FOR_CUDA)})
    write("dev", {n: pin for n, pin in dev.items() if not n.startswith(ONLY_FOR_CUDA) and n not in LEFT_OUT})
    write("wheelhouse", resolve("wheelhouse", ["pyproject.toml", "-"], "", upgrade, "openai-agents>=0.24\n"))


def resolve(name: str, sources: list[str], constraints: str, options: list[str], stdin: str = "") -> Pins:
    """Run pip-compile, starting from the versions that the file has now."""
    with tempfile.TemporaryDirectory() as scratch:
        limits, result = Path(scratch) / "limits.txt", Path(scratch) / "result.txt"
        limits.write_text(constraints)
        result.write_text((HERE / f"{name}.txt").read_text() + (HERE / "cuda.txt").read_text() * (name == "dev"))
        command = [sys.executable, "-m", "piptools", "compile", "--quiet", "--generate-hashes", "--strip-extras"]
        command += ["--allow-unsafe", "--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
        command += [*options, "--constraint", str(limits), "--output-file", str(result), *sources]
        # The default build's hashes come from the index, whatever wheels lie on this machine.
        environment = {k: v for k, v in os.environ.items() if k != "PIP_FIND_LINKS"}
        environment["PIP_CONFIG_FILE"] = os.devnull
        subprocess.run(command, check=True, cwd=HERE.parent, env=environment, input=stdin, text=True)
        return pins(result.read_text())


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
