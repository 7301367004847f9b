"""Transformations change exactly the pattern they know, and otherwise nothing."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tools.transforms import every
from tools.transforms.base import Advice, Proposal, Subject

_PLAIN = """import torch
from torch import nn

DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

model = nn.Linear(4, 2).to(DEVICE_TYPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for inputs, targets in batches:
    inputs, targets = inputs.to(DEVICE_TYPE), targets.to(DEVICE_TYPE)
    logits = model(inputs)
    loss = criterion(logits, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_ATTENTION = """import math
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, q, k, v):
        T = q.size(-2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.drop(att)
        y = att @ v
        return y
"""
_BLOCKS = """from torch import nn


class Net(nn.Module):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
_LINEAR = {
    "op": "aten.linear.default",
    "args": [{"tensor": 0}, {"tensor": 1}],
    "kwargs": {},
    "results": [2],
    "shapes": [{"shape": [8, 2], "stride": [2, 1], "dtype": "float32"}],
}


def _step(files: list[str], operators: list[dict[str, Any]], dtype: str = "float32", **more: Any) -> dict[str, Any]:
    inputs = [{"tensor": 0, "shape": [8, 4], "dtype": dtype}, {"tensor": 1, "shape": [2, 4], "dtype": dtype}]
    return {"inputs": inputs, "operators": operators, "stacks": [[(name, 1, "f") for name in files]], **more}


def _proposed(name: str, folder: Path, text: str, command: str = "python train.py", **about: Any) -> Any:
    (folder / "train.py").write_text(text)
    operators = about.pop("operators", [_LINEAR])
    fits = about.pop("fits", True)
    transform = next(one for one in every() if name == one.ID)
    return transform.propose(Subject(folder, command, _step(["train.py"], operators, **about), fits))


def _text(proposal: Any) -> str:
    assert isinstance(proposal, Proposal)
    text = proposal.files["train.py"].decode()
    ast.parse(text)
    return text


def _lines(before: str, after: str) -> list[str]:
    return [line.strip() for line in after.splitlines() if line not in before.splitlines()]


def test_ids_are_unique_and_in_order() -> None:
    found = every()
    assert len({one.ID for one in found}) == len(found) >= 8
    assert [one.ORDER for one in found] == sorted(one.ORDER for one in found)


def test_model_is_compiled_behind_the_optimizer(tmp_path: Path) -> None:
    after = _text(_proposed("compile-module", tmp_path, _PLAIN))
    assert _lines(_PLAIN, after) == ['if DEVICE_TYPE not in ("cpu", "cuda"):', "model.compile()"]
    assert after.index("model.compile()") > after.index("AdamW")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net = torch.compile(model) if o.fast else model", 'if o.fast or DEVICE_TYPE not in ("cpu", "cuda") else'),
        ("if fast:\n    model = torch.compile(model)", 'if fast or DEVICE_TYPE not in ("cpu", "cuda"):'),
    ],
)  # fmt: skip
def test_own_switch_for_compile_is_widened(tmp_path: Path, before: str, after: str) -> None:
    text = f"{_PLAIN}{before}\n"
    assert after in _text(_proposed("compile-module", tmp_path, text))


def test_switch_on_the_command_line_is_turned(tmp_path: Path) -> None:
    found = _proposed("compile-module", tmp_path, _PLAIN, "python train.py --compile=False --batch_size=8")
    assert not found.files
    assert found.command("python train.py --compile=False -x 1") == "python train.py --compile=True -x 1"
    assert found.command("python train.py --compile no") == "python train.py --compile yes"


def test_what_is_compiled_is_left_alone(tmp_path: Path) -> None:
    assert _proposed("compile-module", tmp_path, _PLAIN, operators=[{**_LINEAR, "region": 1}]) is None


def test_deferred_mode_only_beside_compiled_programs(tmp_path: Path) -> None:
    assert isinstance(_proposed("defer-rest", tmp_path, _PLAIN), Advice)
    after = _text(_proposed("defer-rest", tmp_path, _PLAIN, operators=[{**_LINEAR, "region": 1}]))
    assert after.index("eager_mode") > after.index("DEVICE_TYPE =")
    assert _lines(_PLAIN, after) == [
        'if DEVICE_TYPE == "tpu":', "torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE",
    ]  # fmt: skip


def test_autocast_takes_the_model_and_the_loss(tmp_path: Path) -> None:
    after = _text(_proposed("autocast-loss", tmp_path, _PLAIN))
    block = after[after.index("    with torch.autocast") : after.index("    optimizer.zero_grad")]
    assert block.splitlines() == [
        '    with torch.autocast(DEVICE_TYPE, dtype=torch.bfloat16, enabled=DEVICE_TYPE not in ("cpu", "cuda")):',
        "        logits = model(inputs)",
        "        loss = criterion(logits, targets)",
    ]


def test_no_autocast_for_narrow_numbers(tmp_path: Path) -> None:
    assert _proposed("autocast-loss", tmp_path, _PLAIN, dtype="bfloat16") is None


def test_no_autocast_inside_another_context(tmp_path: Path) -> None:
    text = _PLAIN.replace("    logits = model(inputs)\n    loss =", "    with ctx:\n        loss =")
    assert isinstance(_proposed("autocast-loss", tmp_path, text), Advice)


def test_attention_by_hand_becomes_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after = _text(_proposed("call-sdpa", tmp_path, _ATTENTION))
    assert "is_causal=True" in after and "softmax" not in after
    monkeypatch.syspath_prepend(str(tmp_path))
    results = []
    q, k, v = torch.randn(3, 2, 2, 6, 4).unbind(0)
    for name, text in (("by_hand", _ATTENTION), ("by_operator", after)):
        (tmp_path / f"{name}.py").write_text(text)
        results.append(importlib.import_module(name).Attention(8)(q, k, v))
        sys.modules.pop(name)
    assert torch.allclose(*results, atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dim=-1)", "dim=1)"),
        ("        return y\n", "        return y, att\n"),
        ('float("-inf")', "-1e4"),
        ("k.transpose(-2, -1)", "k.transpose(1, 2)"),
    ],
)
def test_other_attention_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    assert not isinstance(_proposed("call-sdpa", tmp_path, _ATTENTION.replace(old, new)), Proposal)


def test_mask_that_is_not_causal_becomes_an_argument(tmp_path: Path) -> None:
    text = _ATTENTION.replace("torch.tril(", "torch.triu(")
    after = _text(_proposed("call-sdpa", tmp_path, text))
    assert "attn_mask=self.bias[:, :, :T, :T] != 0" in after and "is_causal" not in after


def test_optimizer_is_fused_off_cpu_and_cuda(tmp_path: Path) -> None:
    after = _text(_proposed("fuse-optimizer", tmp_path, _PLAIN))
    assert 'lr=1e-3, fused=None if DEVICE_TYPE in ("cpu", "cuda") else True)' in after
    chosen = _PLAIN.replace("lr=1e-3", "lr=1e-3, foreach=True")
    assert _proposed("fuse-optimizer", tmp_path, chosen) is None
    own = "use_fused = fused_available and device_type == 'cuda'\n"
    assert 'device_type != "cpu"' in _text(_proposed("fuse-optimizer", tmp_path, own))


def test_fused_optimizer_gives_way_to_lists_off_cpu_and_cuda(tmp_path: Path) -> None:
    text = _PLAIN.replace("lr=1e-3", "lr=1e-3, fused=True")
    fused = {**_LINEAR, "op": "aten._fused_adamw_.default"}
    assert _proposed("list-optimizer", tmp_path, text) is None
    after = _text(_proposed("list-optimizer", tmp_path, text, operators=[fused]))
    assert 'fused=True if DEVICE_TYPE in ("cpu", "cuda") else None)' in after


def test_blocks_are_computed_again_only_where_the_step_does_not_fit(tmp_path: Path) -> None:
    assert _proposed("checkpoint-blocks", tmp_path, _BLOCKS) is None
    after = _text(_proposed("checkpoint-blocks", tmp_path, _BLOCKS, fits=False))
    assert _lines(_BLOCKS, after) == [
        "from torch.utils.checkpoint import checkpoint", "x = checkpoint(block, x, use_reentrant=False)",
    ]  # fmt: skip


def test_model_of_transformers_is_told_to_compute_again(tmp_path: Path) -> None:
    text = (
        "from transformers import LlamaForCausalLM\n\n\ndef main():\n    model = LlamaForCausalLM(config).to('tpu')\n"
    )
    after = _text(_proposed("checkpoint-blocks", tmp_path, text, fits=False))
    assert after.endswith("    model.gradient_checkpointing_enable()\n")


def test_a_file_may_end_without_a_newline(tmp_path: Path) -> None:
    text = "from transformers import LlamaForCausalLM\n\nmodel = LlamaForCausalLM(config)"
    after = _text(_proposed("checkpoint-blocks", tmp_path, text, fits=False))
    assert after == f"{text}\nmodel.gradient_checkpointing_enable()"


def test_batches_follow_the_command(tmp_path: Path) -> None:
    command = "python train.py --batch_size=8 --length 4"
    larger = _proposed("larger-batch", tmp_path, _PLAIN, command)
    assert larger.again and larger.command(command) == "python train.py --batch_size=16 --length 4"
    smaller = _proposed("smaller-batch", tmp_path, _PLAIN, command, fits=False)
    assert smaller.command(command) == "python train.py --batch_size=4 --length 4"
    assert isinstance(_proposed("larger-batch", tmp_path, _PLAIN), Advice)
    assert _proposed("smaller-batch", tmp_path, _PLAIN, command) is None
