"""What is installed in an interpreter: versions and places of the packages the device needs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DISTRIBUTIONS = ("torch", "torch_tpu", "libtpu", "jax", "jaxlib", "numpy", "lammps-jax-pjrt-cpu")
QUERY_SECONDS = 60.0


@dataclass(frozen=True)
class Installed:
    """Packages of one interpreter.

    Attributes:
        python: The interpreter.
        python_version: Its version, such as ``3.11.2``.
        versions: Installed version by distribution name; a missing one has no entry.
        folders: Folder of each installed top-level package that holds native libraries.
        torch_tpu_requires: Requirement strings torch_tpu declares.
    """

    python: Path
    python_version: str
    versions: dict[str, str]
    folders: dict[str, Path]
    torch_tpu_requires: tuple[str, ...]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _folder(package: str) -> str | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


def _requires() -> list[str]:
    try:
        return importlib.metadata.requires("torch_tpu") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def query() -> dict[str, object]:
    """Describes the running interpreter as plain data, without importing any of the packages."""
    versions = {name: version for name in DISTRIBUTIONS if (version := _version(name))}
    packages = ("torch", "torch_tpu", "libtpu", "lammps_jax_pjrt_cpu")
    folders = {name: folder for name in packages if (folder := _folder(name))}
    return {
        "python_version": platform.python_version(),
        "versions": versions,
        "folders": folders,
        "requires": _requires(),
    }


def _ask(python: Path) -> dict[str, object]:
    command: Sequence[str] = (str(python), os.fspath(Path(__file__).resolve()))
    # The workload's interpreter must answer for itself, so nothing of ours may leak onto its path.
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True)
    # Anything that starts and ends well gets here, an interpreter or not.
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise subprocess.SubprocessError(f"{python} is no Python interpreter") from error
    assert isinstance(answer, dict)
    return answer


def installed(python: Path | None = None) -> Installed:
    """Lists what an interpreter has installed.

    Args:
        python: The interpreter to ask; None is the running one.

    Returns:
        Its versions and package folders.

    Raises:
        OSError: The interpreter cannot be started.
        subprocess.SubprocessError: It failed or did not answer in time.
    """
    here = Path(sys.executable)
    answer = query() if python is None or Path(python) == here else _ask(Path(python))
    versions, folders, requires = answer["versions"], answer["folders"], answer["requires"]
    assert isinstance(versions, dict) and isinstance(folders, dict) and isinstance(requires, list)
    return Installed(
        python=Path(python) if python is not None else here,
        python_version=str(answer["python_version"]),
        versions=dict(versions),
        folders={name: Path(folder) for name, folder in folders.items()},
        torch_tpu_requires=tuple(requires),
    )


if __name__ == "__main__":
    # Run as a file by another interpreter: the script's own folder must not shadow its packages.
    sys.path.pop(0)
    sys.stdout.write(json.dumps(query()) + "\n")
