"""In a repository that is for older releases of PyTorch, what the rules write runs on those too."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.code.module import Module
from tools.code.older import is_for_older, oldest_of
from tools.code.source import SourceFile
from tools.engine import fix
from tools.project import TextProject
from tools.rules import all_rules

TOP = """DEVICE_TYPE = (
    torch.accelerator.current_accelerator().type
    if hasattr(torch, "accelerator") and torch.accelerator.is_available()
    else ("cuda" if torch.cuda.is_available() else "cpu")
)
"""


def migrated(text: str, requirement: str = "torch>=1.13\n", path: str = "train.py") -> str:
    data = text.encode()
    for _ in range(6):
        before = data
        for rule in all_rules():
            texts = {path: data, "requirements.txt": requirement.encode()}
            data = fix(path, data, TextProject(Path(), texts=texts), [rule]).data
        if data == before:
            return data.decode()
    raise AssertionError("the rules do not come to rest")


@pytest.mark.parametrize(
    ("spec", "release"),
    [
        (">=1.13", (1, 13)),
        (">=2.0,<3", (2, 0)),
        ("~=2.4", (2, 4)),
        ("==2.1.0+cu121", (2, 1)),
        ("^1.9", (1, 9)),
        ("<2.4", (2, 4)),
        ("", None),
        ("!=2.0", None),
    ],
)
def test_oldest_release_that_a_requirement_allows(spec: str, release: tuple[int, int] | None) -> None:
    assert oldest_of(spec) == release


@pytest.mark.parametrize(
    ("texts", "older"),
    [
        ({"requirements.txt": b"torch>=1.13\n"}, True),
        ({"requirements.txt": b"torch>=2.6\n"}, False),
        ({"requirements.txt": b"torch\n"}, False),
        ({"requirements/base.txt": b"torch>=1.13\n"}, True),
        ({"other/requirements.txt": b"torch>=1.13\n"}, False),
        ({"requirements.txt": b"torch>=1.13\n", "pkg/requirements.txt": b"torch>=2.7\n"}, False),
        ({"pyproject.toml": b'[project]\ndependencies = ["torch >= 2.1"]\n'}, True),
        ({"setup.py": b"setup(install_requires=['torch>=1.8'])\n"}, True),
        ({"pkg-1.0.dist-info/METADATA": b"Name: pkg\nRequires-Dist: torch>=1.11\n"}, True),
        ({"pkg-1.0.dist-info/METADATA": b"Name: pkg\nRequires-Dist: torchvision>=0.11\n"}, False),
        ({"pkg/b.py": b"if hasattr(torch, 'accelerator'):\n    pass\n"}, True),
        ({"pkg/b.py": f"import torch\n{TOP}".encode()}, False),
    ],
)
def test_what_a_repository_says(texts: dict[str, bytes], older: bool) -> None:
    source = SourceFile("pkg/a.py", b"")
    assert is_for_older(Module(source, TextProject(Path(), texts={"pkg/a.py": b"", **texts}), ())) is older


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'\n", f"\n{TOP}device = DEVICE_TYPE\n"),
        (
            "device = 'cuda:0' if torch.cuda.is_available() and not cpu else 'cpu'\n",
            f"\n{TOP}device = f'{{DEVICE_TYPE}}:0' if DEVICE_TYPE != \"cpu\" and not cpu else 'cpu'\n",
        ),
        ("x = x.cuda()\n", f"\n{TOP}x = x.to(DEVICE_TYPE)\n"),
        (
            "if not torch.cuda.is_available():\n    raise SystemExit\nx.cuda()\n",
            f'\n{TOP}if DEVICE_TYPE == "cpu":\n    raise SystemExit\nx.to(DEVICE_TYPE)\n',
        ),
        (
            "n = torch.cuda.device_count()\n",
            f"\n{TOP}n = torch.accelerator.device_count() "
            'if DEVICE_TYPE not in ("cpu", "cuda") else torch.cuda.device_count()\n',
        ),
        (
            "torch.cuda.synchronize()\n",
            f"\n{TOP}if torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
            'elif DEVICE_TYPE != "cpu":\n    torch.accelerator.synchronize()\n',
        ),
        (
            "name = torch.cuda.get_device_name()\n",
            f"\n{TOP}name = torch.cuda.get_device_name() if torch.cuda.is_available() else DEVICE_TYPE\n",
        ),
        (
            "torch.distributed.init_process_group('nccl')\n",
            f'\n{TOP}torch.distributed.init_process_group("nccl" if DEVICE_TYPE == "cuda" else "gloo" '
            'if DEVICE_TYPE == "cpu" else torch.distributed.get_default_backend_for_device(DEVICE_TYPE))\n',
        ),
        (
            "scaler = torch.cuda.amp.GradScaler()\n",
            "scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())\n",
        ),
    ],
)
def test_form_for_older_releases(before: str, after: str) -> None:
    assert migrated(f"import torch\n{before}") == f"import torch\n{after}"


_PROGRAM = """
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
half = torch.bfloat16 if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else torch.float32
model = torch.nn.Linear(2, 1).to(device)
scaler = torch.cuda.amp.GradScaler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2)
if torch.cuda.is_available():
    x = x.cuda()
    torch.cuda.synchronize()
with torch.cuda.amp.autocast():
    loss = model(x).square().mean()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
workers = 8 // max(1, torch.cuda.device_count())
peak = torch.cuda.max_memory_allocated() / 2**20
backend = "nccl" if torch.cuda.is_available() else "gloo"
if x.is_cuda:
    x = x.cpu()
y = torch.zeros(1).cuda() if torch.cuda.is_available() else torch.zeros(1)
print(device, half, workers, peak, backend, loss.dtype, y.device)
"""


def run(text: str) -> str:
    environment = os.environ | {
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("old", ["", "import torch; del torch.accelerator; del torch.amp.GradScaler\n"])
def test_program_prints_the_same_on_the_cpu(old: str) -> None:
    pytest.importorskip("torch")
    text = migrated(_PROGRAM)
    assert "accelerator" in text
    ast.parse(text)
    # torch.optim and others look at torch.accelerator themselves, so it goes once they are loaded.
    assert run("import torch._dynamo\n" * bool(old) + old + text) == run(_PROGRAM)
