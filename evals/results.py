"""Writes published results: a JSON file with every figure, and a page made from it."""

from __future__ import annotations

import datetime
import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "evals" / "results"
_PLACE = re.compile(r"(?<![\w./:-])/(?:[\w.+@-]+/)+")
_VERSIONS = """
import json
from importlib import metadata
found = {}
for name in ("torch", "torch_tpu", "torchvision", "jax", "jaxlib", "lammps-jax-pjrt-cpu", "transformers", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        continue
print(json.dumps(found))
"""


def today() -> str:
    """The date of a result, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def versions(python: Path) -> dict[str, str]:
    """The packages a result depends on, of the interpreter that ran the programs."""
    done = subprocess.run([str(python), "-I", "-c", _VERSIONS], capture_output=True, text=True, check=True)
    return {"python": platform.python_version(), **json.loads(done.stdout)}


def revision() -> str:
    """The commit of this project that was judged, marked where files of it were changed since."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "torchtpu", "tools", "agents", "evals")
    except (OSError, subprocess.SubprocessError):
        return "not a checkout"
    changed = "\n".join(line for line in changed.splitlines() if "evals/results/" not in line)
    return commit + (" with changes" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read(name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The records published under a name so far."""
    path = folder / f"{name}.json"
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def without_places(value: Any) -> Any:
    """The same with the folders of this machine left out of every text: `/a/b/c.py` becomes `c.py`."""
    if isinstance(value, str):
        return _PLACE.sub("", value)
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items()}
    return [without_places(item) for item in value] if isinstance(value, (list, tuple)) else value


def publish(name: str, records: list[dict[str, Any]], page: str, folder: Path = FOLDER) -> None:
    """Replace what is published under a name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
