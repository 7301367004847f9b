"""A new import stands where the file's own order wants it, and new blocks are indented as their surroundings are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.code.imports import new_import
from tools.code.module import Module
from tools.code.rewrite import header
from tools.code.source import SourceFile
from tools.engine import fix
from tools.project import TextProject
from tools.rules import selected


def with_import(text: str, package: str) -> str:
    source = SourceFile("a.py", text.encode())
    module = Module(source, TextProject(Path(), texts={}), ())
    edit = new_import(source, header(module), package)
    assert edit is not None
    return text[: edit.start] + edit.replacement + text[edit.end :]


NP, NN, PATH = "import numpy as np\n", "from torch import nn\n", "from pathlib import Path\n"
FUTURE = "from __future__ import annotations\n\n"


@pytest.mark.parametrize(
    ("package", "before", "after"),
    [
        ("torch", f"{NP}from PIL import Image\n", f"{NP}import torch\nfrom PIL import Image\n"),
        ("torch", f"{NN}from torch.optim import SGD\n", f"import torch\n{NN}from torch.optim import SGD\n"),
        ("torch", "import os\n\nfrom . import nn\n", "import os\n\nimport torch\n\nfrom . import nn\n"),
        ("torch", "from . import nn\n", "import torch\n\nfrom . import nn\n"),
        ("torch", "import os\nx = 1\n", "import os\n\nimport torch\nx = 1\n"),
        ("torch", f"{FUTURE}x = 1\n", f"{FUTURE}import torch\n\nx = 1\n"),
        ("torch", "import z\nimport a\nf()\n", "import z\nimport a\nimport torch\nf()\n"),
        ("torch", "import z\nimport a  # why\n", "import z\nimport a  # why\nimport torch\n"),
        ("torch", "import a\nfrom c import d\nimport u\n", "import a\nfrom c import d\nimport torch\nimport u\n"),
        ("torch", "import a\r\nimport u\r\n", "import a\r\nimport torch\r\nimport u\r\n"),
        ("contextlib", '"""D."""\n\nimport torch\n', '"""D."""\n\nimport contextlib\n\nimport torch\n'),
        ("contextlib", f"import os\n{PATH}\nimport a\n", f"import contextlib\nimport os\n{PATH}\nimport a\n"),
        ("contextlib", "import ast\nimport os\nimport a\n", "import ast\nimport contextlib\nimport os\nimport a\n"),
    ],
)
def test_new_import_is_sorted_as_the_file_is(package: str, before: str, after: str) -> None:
    assert with_import(before, package) == after


@pytest.mark.parametrize(
    ("before", "guarded"),
    [
        (
            'def a(x):\n    """Does.\n\n    Args:\n     x: one.\n    """\n    torch.cuda.set_device(x)\n',
            "    if torch.cuda.is_available():\n        torch.cuda.set_device(x)\n",
        ),
        (
            "class A:\n  def a(self):\n    b = {1:\n 2}\n    torch.cuda.set_device(0)\n",
            "    if torch.cuda.is_available():\n      torch.cuda.set_device(0)\n",
        ),
        (
            "torch.cuda.set_device(0)\nif x:\n   y()\n",
            "if torch.cuda.is_available():\n   torch.cuda.set_device(0)\n",
        ),
        (
            "if x:\n\tif y:\n\t\ttorch.cuda.set_device(0)\n",
            "\t\tif torch.cuda.is_available():\n\t\t\ttorch.cuda.set_device(0)\n",
        ),
    ],
)
def test_new_block_is_indented_as_those_around_it(before: str, guarded: str) -> None:
    data = f"import torch\n{before}".encode()
    fixed = fix("a.py", data, TextProject(Path(), texts={"a.py": data}), selected(["TPU201"])).data.decode()
    assert guarded in fixed
