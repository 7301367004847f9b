"""Code for releases of PyTorch that lack an API is told from code that runs everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.code.absence import stands_in
from tools.code.module import Module
from tools.code.source import SourceFile
from tools.engine import fix
from tools.project import TextProject
from tools.rules import all_rules
from tools.rules.base import interest

STANDS_IN = [
    "try:\n    s = torch.amp.GradScaler(device=d)\nexcept (AttributeError, TypeError):\n    s = old()\n",
    "try:\n    from torch.amp import autocast\nexcept ImportError:\n    old()\n",
    "try:\n    from torch.amp import autocast\nexcept Exception:\n    old()\n",
    "if is_torch_version('<', '2.3'):\n    old()\n",
    "if is_torch_version('>=', '2.3'):\n    new()\nelse:\n    old()\n",
    "s = new() if _TORCH_GREATER_EQUAL_2_4 else old()\n",
    "s = new() if TORCH_2_4 else old()\n",
    "if hasattr(torch, 'accelerator') and torch.accelerator.is_available():\n    new()\nelse:\n    old()\n",
    "if version.parse(torch.__version__) < version.parse('2.4'):\n    old()\n",
    "if '2.4' > torch.__version__:\n    old()\n",
    "if torch.__version__.startswith('1.'):\n    old()\n",
    "n = torch.accelerator.f() if hasattr(torch, 'accelerator') else old()\n",
    "if not hasattr(torch.amp, 'GradScaler'):\n    old()\n",
    "if getattr(torch, 'accelerator', None) is None:\n    old()\n",
    "HAS_AMP = hasattr(torch.amp, 'GradScaler')\nif not HAS_AMP:\n    old()\n",
    "try:\n    from torch.amp import GradScaler\n    NEW = True\nexcept ImportError:\n    NEW = False\n"
    "s = GradScaler() if NEW else old()\n",
    "def f():\n    if pytorch_after(2, 4):\n        return new()\n    return old()\n",
    "n = hasattr(torch, 'accelerator') or old()\n",
]
RUNS = [
    "try:\n    import apex\nexcept ImportError:\n    old()\n",
    "try:\n    from flash_attn import f\nexcept ImportError:\n    old()\n",
    "try:\n    torch.cuda.synchronize()\nexcept RuntimeError:\n    old()\n",
    "try:\n    x = d['a'].b\nexcept AttributeError:\n    old()\n",
    "if hasattr(torch, 'xpu') and torch.xpu.is_available():\n    new()\nelse:\n    old()\n",
    "if hasattr(torch.backends, 'mps'):\n    new()\nelse:\n    old()\n",
    "if is_torch_version('>=', '2.3'):\n    old()\n",
    "if TORCH_2_4 and fast:\n    old()\n",
    "if hasattr(torch, 'accelerator') and fast:\n    new()\nelif fast:\n    pass\nelse:\n    old()\n",
    "if torch.version.cuda > '11':\n    old()\n",
    "if torchvision.__version__ < '0.13':\n    old()\n",
    "if hasattr(model, 'module'):\n    new()\nelse:\n    old()\n",
    "if not torch_available:\n    old()\n",
    "if version < 3:\n    old()\n",
]


def old_call(text: str) -> tuple[Module, ast.expr]:
    data = f"import torch\n{text}".encode()
    rules = interest(list(all_rules()))
    module = Module(SourceFile("a.py", data), TextProject(Path(), texts={"a.py": data}), (*rules, "old("))
    return module, next(c for c in module.nodes(ast.Call) if module.text(c) == "old()")


@pytest.mark.parametrize("text", STANDS_IN)
def test_stands_in_for_what_is_absent(text: str) -> None:
    assert stands_in(*old_call(text))


@pytest.mark.parametrize("text", RUNS)
def test_runs_where_all_is_there(text: str) -> None:
    assert not stands_in(*old_call(text))


OLD = [
    "torch.cuda.amp.GradScaler()",
    "torch.cuda.amp.autocast()",
    "torch.cuda.current_device()",
    "torch.cuda.device_count()",
    "torch.cuda.synchronize()",
    "torch.cuda.max_memory_allocated()",
    "torch.load(p, map_location='cuda')",
    "x.cuda()",
    "DataLoader(d, pin_memory=True)",
]


@pytest.mark.parametrize("call", OLD)
@pytest.mark.parametrize("text", STANDS_IN)
def test_no_rule_touches_it(text: str, call: str) -> None:
    data = f"import torch\nfrom torch.utils.data import DataLoader\n{text}".replace("old()", call).encode()
    texts = {"a.py": data}
    for rule in all_rules():
        assert call in fix("a.py", data, TextProject(Path(), texts=texts), [rule]).data.decode()
