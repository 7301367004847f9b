"""Imports go with the last use that a fix took away, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.code.tidy import without_orphans
from tools.project import TextProject


def tidied(before: str, after: str, path: str = "a.py", others: dict[str, bytes] | None = None) -> str:
    project = TextProject(Path(), texts={path: after.encode(), **(others or {})})
    return without_orphans(path, before.encode(), after.encode(), project).decode()


@pytest.mark.parametrize(
    ("imports", "left"),
    [
        ("from torch.cuda import gone\n", ""),
        ("import torch.cuda as gone\n", ""),
        ("from torch.cuda import gone, kept\n", "from torch.cuda import kept\n"),
        ("from torch.cuda import kept, gone\n", "from torch.cuda import kept\n"),
        ("from torch.cuda import (\n    gone,\n    kept,\n)\n", "from torch.cuda import (\n    kept,\n)\n"),
        ("from torch.cuda import a as gone, kept as b\n", "from torch.cuda import kept as b\n"),
        ("import os, torch.cuda as gone\n", "import os\n"),
        ("import torch.cuda as gone, os\r\n", "import os\r\n"),
        ("if kept:\n    from torch.cuda import gone\n    kept\n", "if kept:\n    kept\n"),
    ],
)
def test_what_the_fix_no_longer_uses_goes(imports: str, left: str) -> None:
    assert tidied(imports + "gone(kept)\n", imports + "kept\n") == left + "kept\n"


@pytest.mark.parametrize(
    "imports",
    [
        "import torch\n",  # importing torch is an act of its own
        "from torch.cuda import gone  # for others\n",
        "from torch.cuda import gone; x = 1\n",
        "from apex import gone\n",
        "from .torch import gone\n",
        "try:\n    from torch.cuda import gone\nexcept ImportError:\n    pass\n",
        "from torch.cuda import gone\n__all__ = ['gone']\n",
        "from torch.cuda import gone\nx: 'gone' = None\n",
        "from torch.cuda import gone\ndef f():\n    global gone\n",
    ],
)
def test_what_may_be_meant_for_others_stays(imports: str) -> None:
    assert tidied(imports + "gone, torch\n", imports) == imports


def test_what_was_never_used_stays() -> None:
    text = "from torch.cuda import gone\nx = 1\n"
    assert tidied(text, text) == text


def test_what_other_files_import_stays() -> None:
    text = "from torch.cuda import gone\nx = 1\n"
    assert tidied(text + "gone()\n", text, "__init__.py") == text
    for other in (b"from .a import gone\n", b"from a import (\n    x,\n    gone as y,\n)\n"):
        assert tidied(text + "gone()\n", text, others={"b.py": other}) == text
    assert tidied(text + "gone()\n", text, others={"b.py": b"from torch.cuda import gone\n"}) == "x = 1\n"
