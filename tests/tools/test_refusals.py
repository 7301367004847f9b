"""What a change may not do is refused by what the files say; honest fixes pass."""

from __future__ import annotations

import pytest

from tools.refusals import refuse

MODEL = """import torch

class Net(torch.nn.Module):
    def forward(self, x):
        y = torch.median(x)
        return y * 2

def train(model, optimizer, x):
    assert x.shape[0] > 0
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    return loss
"""


def changed(old: str, new: str) -> list[str]:
    assert old in MODEL
    return refuse({"net.py": MODEL}, {"net.py": MODEL.replace(old, new)})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.median(x)", "torch.sort(x.flatten()).values[(x.numel() - 1) // 2]"),
        ("x.shape[0] > 0", "x.ndim > 1"),
        ("import torch\n", "import torch\ntry:\n    import apex\nexcept ImportError:\n    apex = None\n"),
        (
            "    loss.backward()\n",
            "    if loss.device.type == 'tpu':\n        loss = loss.float()\n    loss.backward()\n",
        ),
        (
            "    return loss\n",
            "    try:\n        return loss\n    except ValueError as e:\n        raise TypeError from e\n",
        ),
    ],
)
def test_an_honest_change_passes(old: str, new: str) -> None:
    assert changed(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("        y = torch.median(x)\n        return y * 2", "        return x", "Net.forward would be a stub"),
        (
            "        y = torch.median(x)\n        return y * 2",
            "        return torch.zeros(3)",
            "Net.forward would be a stub",
        ),
        ("        y = torch.median(x)\n        return y * 2", "        raise NotImplementedError", "would be a stub"),
        ("        y = torch.median(x)\n", "        return None\n", "would be a stub"),
        ("    loss.backward()\n", "", "leaves out work: backward()"),
        ("    optimizer.step()\n", "", "leaves out work: step()"),
        (
            "    loss.backward()\n",
            "    try:\n        loss.backward()\n    except Exception:\n        pass\n",
            "goes on",
        ),
        ("    loss.backward()\n", "    try:\n        loss.backward()\n    except:\n        print('x')\n", "goes on"),
        ("    loss.backward()\n", "    with contextlib.suppress(RuntimeError):\n        loss.backward()\n", "suppress"),
        ("    return loss\n", "    sys.exit(0)\n", "ends the program"),
        ("    return loss\n", "    raise SystemExit(0)\n", "ends the program"),
        ("    loss.backward()\n", "    if False:\n        loss.backward()\n", "switches code off"),
        ("import torch\n", "import torch, warnings\nwarnings.filterwarnings('ignore')\n", "hides warnings"),
        ("import torch\n", "import torch\nfrom unittest.mock import MagicMock\n", "mock"),
        ("    assert x.shape[0] > 0\n", "", "only deletes checks"),
        ("import torch\n", "import torch(\n", "would not parse"),
        (MODEL[MODEL.index("def train") :], "", "takes out train"),
    ],
)
def test_a_dishonest_change_is_refused(old: str, new: str, said: str) -> None:
    reasons = changed(old, new)
    assert any(said in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/test_net.py", "def test_a():\n    assert f() == 1\n", "def test_a():\n    assert f() is not None\n"),
        ("tests/test_net.py", "def test_a():\n    assert f() == 1\n", None),
        ("net_test.py", "x = 1\n", "x = 2\n"),
        ("conftest.py", None, "collect_ignore = ['test_net.py']\n"),
        ("torchtpu.toml", "ignore = []\n", "ignore = ['TPU']\n"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = ''\n",
            "[tool.pytest.ini_options]\naddopts = '-k no'\n",
        ),
        ("sitecustomize.py", None, "x = 1\n"),
        ("../net.py", None, "x = 1\n"),
        ("/etc/passwd", "x", "y"),
        (".git/config", "x", "y"),
        ("net.py", "x = 1\n", None),
    ],
)
def test_what_judges_and_what_lies_outside_stays(path: str, old: str | None, new: str | None) -> None:
    assert refuse({path: old}, {path: new})


def test_what_was_there_before_is_not_held_against_a_change() -> None:
    old = "try:\n    f()\nexcept Exception:\n    pass\nx = 1\n"
    assert refuse({"a.py": old}, {"a.py": old.replace("x = 1", "x = 2")}) == []
    assert refuse({"pyproject.toml": "[project]\nname = 'a'\n"}, {"pyproject.toml": "[project]\nname = 'b'\n"}) == []
