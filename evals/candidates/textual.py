"""The first thing many try: every `cuda` in the source becomes `tpu`. It claims that it runs if it ends with 0."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from evals.candidates.answer import Answer, Limits
from evals.scorers.running import ends_well
from evals.task import Task

_WORDS = ((re.compile(r"\bcuda\b"), "tpu"), (re.compile(r"\bnccl\b"), "tpu_dist"))
_KINDS = {".py", ".yaml", ".yml", ".json", ".toml", ".sh", ".ipynb"}


def migrate(task: Task, checkout: Path, place: Path, limits: Limits) -> Answer:
    """Replace the words in every source and settings file."""
    tree = Path(shutil.copytree(checkout, place / "tree", symlinks=True))
    for path in sorted(tree.rglob("*")):
        if path.suffix in _KINDS and path.is_file() and ".git" not in path.parts:
            text = path.read_text(encoding="utf-8")
            for word, new in _WORDS:
                text = word.sub(new, text)
            path.write_text(text, encoding="utf-8")
    return Answer(tree=tree, claims=["runs"] if ends_well(task, tree, place / "claim", limits) else [])
