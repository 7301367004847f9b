"""The example that the documentation migrates: its size, its first loss and its text are what is said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from evals import task as tasks

# As on a machine that has neither a TPU nor torch_tpu.
PLAIN = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=PLAIN, capture_output=True, text=True, timeout=240)


def test_the_entry_fails_without_cuda(tmp_path: Path) -> None:
    task = tasks.load("chargpt")
    done = python(*task.entries[0].split()[1:], cwd=task.checkout(tmp_path / "chargpt"))
    assert done.returncode != 0
    assert re.search(task.baseline.fails_without_cuda, done.stderr)


def test_its_own_tests_pass_on_a_cpu(tmp_path: Path) -> None:
    task = tasks.load("chargpt")
    checkout = task.checkout(tmp_path / "chargpt")
    done = python("-m", *task.baseline.own_tests.split(), "-q", "-p", "no:cacheprovider", cwd=checkout)
    assert done.returncode == 0, done.stdout


def test_chargpt_has_the_stated_size_and_first_loss(tmp_path: Path) -> None:
    task = tasks.load("chargpt")
    program = (
        "import torch\n"
        "from chargpt import data, settings\n"
        "from chargpt.model import CharGPT\n"
        "o = settings.load([])\n"
        "alphabet, windows, _ = data.read(o.corpus, o.context)\n"
        "torch.manual_seed(o.seed)\n"
        "model = CharGPT(len(alphabet), o.width, o.num_layers, o.num_heads, o.context, o.dropout)\n"
        "inputs, targets = windows[0]\n"
        "print(model.num_parameters(), len(alphabet), model(inputs[None], targets[None])[1].item())\n"
    )
    done = python("-c", program, cwd=task.source)
    assert done.returncode == 0, done.stderr
    num_parameters, symbols, loss = done.stdout.split()
    assert int(num_parameters) == task.baseline.num_parameters
    assert int(symbols) == task.baseline.symbols
    low, high = task.baseline.first_loss
    assert low < float(loss) < high


def test_chargpt_corpus_is_what_its_generator_makes() -> None:
    corpus = tasks.load("chargpt").source / "corpus"
    program = "import make, sys; sys.stdout.write(make.text())"
    done = python("-c", program, cwd=corpus)
    assert done.stdout == (corpus / "harbour.txt").read_text(encoding="utf-8")
