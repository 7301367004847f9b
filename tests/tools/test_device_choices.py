"""Devices in unusual places and forms: a choice is fixed or reported, data and other libraries are left alone."""

from __future__ import annotations

import pytest

from tests.tools.rows import found, migrated

CHOSEN = "torch.accelerator.current_accelerator().type"


@pytest.mark.parametrize(
    "text",
    [
        # Records about devices.
        (
            'rows = [{"device": "cuda", "t": 1}, {"device": "cpu", "t": 2}]\n'
            'print([r for r in rows if r["device"] == "cuda"])\n'
        ),
        'print(json.dumps({"device": "cuda", "n": 1}))\n',
        ('match cfg:\n    case {"device": "cuda", "n": n}:\n        pass\nbuild({"device": "cuda", "n": 4})\n'),
        'state = {"device": "cuda"}\nif state["device"] != "cuda":\n    raise SystemExit\n',
        # CUDA itself, on whatever machine.
        'TYPES = {"cuda": torch.device("cuda"), "cpu": torch.device("cpu")}\n',
        'def test(self):\n    self.assertEqual(torch.device("cuda").type, "cuda")\n',
        # Libraries that have not heard of PyTorch's devices.
        ('import xgboost as xgb\nm = xgb.XGBClassifier(device="cuda")\nb = xgb.train({"device": "cuda"}, None)\n'),
        (
            "try:\n    import lightgbm as lgb\nexcept ImportError:\n    lgb = None\n"
            'm = lgb.LGBMClassifier(device="cuda")\n'
        ),
        'import jax\nx = jax.device_put(1, device=jax.devices("cuda")[0])\n',
        # A class of the file that is no data loader, and a plain dictionary.
        ("class My:\n    def __init__(self, pin_memory):\n        self.pin = pin_memory\nx = My(pin_memory=True)\n"),
        'flag = {"pin_memory": True}["pin_memory"]\n',
    ],
)
def test_what_names_no_device_of_pytorch_is_left(text):
    text = f"import json\nimport torch\n\n{text}"
    assert migrated(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('cfg = {"device": "cuda"}\nmodel.to(cfg["device"])\n', 'cfg = {"device": DEVICE_TYPE}'),
        (
            'd = "cpu" if not torch.cuda.is_available() else "cuda"\n',
            f'd = "cpu" if not torch.accelerator.is_available() else {CHOSEN}',
        ),
        (
            'd = "cuda:{}".format(r) if torch.cuda.is_available() else "cpu"\n',
            'd = "cuda:{}".format(r) if torch.cuda.is_available() else DEVICE_TYPE',
        ),
        (
            'd = torch.device("cuda:%d" % r)\n',
            'torch.device("cuda:%d" % r if torch.cuda.is_available() else DEVICE_TYPE)',
        ),
        (
            'd = torch.device("cuda:" + str(r))\n',
            'torch.device("cuda:" + str(r) if torch.cuda.is_available() else DEVICE_TYPE)',
        ),
        (
            "def f(x):\n    return x.cuda() if torch.cuda.is_available() else x\n",
            "return x.to(DEVICE_TYPE) if torch.accelerator.is_available() else x",
        ),
        (
            (
                'def pick(i):\n    if torch.cuda.is_available():\n        return f"cuda:{i}"\n'
                '    else:\n        return "cpu"\n'
            ),
            (
                "    if torch.accelerator.is_available():\n"
                '        return f"cuda:{i}" if torch.cuda.is_available() else DEVICE_TYPE'
            ),
        ),
        (
            (
                "class F:\n    cuda = torch.cuda.is_available()\n    def n(self):\n"
                '        return "cuda" if self.cuda else "cpu"\n'
            ),
            "return DEVICE_TYPE if self.cuda",
        ),
        (
            "kwargs = dict(pin_memory=True)\nloader = torch.utils.data.DataLoader(x, **kwargs)\n",
            "dict(pin_memory=torch.cuda.is_available())",
        ),
    ],
)
def test_what_chooses_a_device_is_fixed(text, expected):
    out = migrated(f"import torch\n\nr = 0\n{text}")
    assert expected in out
    assert not {"TPU101", "TPU102", "TPU103", "TPU104", "TPU119"} & found(out)


def test_words_without_blanks_do_not_grow_together():
    text = "import torch\nx = 'cuda'if torch.cuda.is_available()else'cpu'\n\n\ndef device():\n    return'cuda'\n"
    out = migrated(text)
    assert "current_accelerator().type if torch.accelerator.is_available()else'cpu'" in out
    assert "return x" in out or "return DEVICE_TYPE" in out


def test_a_test_is_not_widened_for_a_move_that_stays():
    text = (
        "import torch\n\n\nclass Batch:\n    def cuda(self):\n        return self\n\n\n"
        "if torch.cuda.is_available():\n    m.cuda()\n"
    )
    assert migrated(text) == text
    assert "TPU102" in found(text)
