"""Small synthetic data in the formats that public training programs read."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

WORDS = "the of a tide boat net gull rope lamp stone west north slow bright cold hand sail wait turn keep".split()

Prepare = Callable[[Path], None]


def prose(num_characters: int, seed: int = 0) -> str:
    """Lines of words, with a full stop now and then."""
    rng = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < num_characters:
        line = " ".join(rng.choice(WORDS) for _ in range(rng.randint(5, 12))) + rng.choice([".", ",", " ;", ""])
        lines.append(line.capitalize())
        length += len(line) + 1
    return "\n".join(lines) + "\n"


def text_files(**num_characters: int) -> Prepare:
    """Write one text file a keyword; `__` stands for `/` and `_txt` for the suffix."""

    def prepare(root: Path) -> None:
        for seed, (name, size) in enumerate(num_characters.items()):
            path = root / (name.replace("__", "/").removesuffix("_txt") + ".txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(prose(size, seed), encoding="utf-8")

    return prepare


def nanogpt_characters(root: Path) -> None:
    """The three files that nanoGPT's `data/shakespeare_char/prepare.py` would make of a text."""
    folder = root / "data" / "shakespeare_char"
    text = prose(60_000)
    symbols = sorted(set(text))
    number = {symbol: i for i, symbol in enumerate(symbols)}
    codes = [number[symbol] for symbol in text]
    border = len(codes) * 9 // 10
    for name, part in (("train", codes[:border]), ("val", codes[border:])):
        (folder / f"{name}.bin").write_bytes(struct.pack(f"<{len(part)}H", *part))
    meta = {"vocab_size": len(symbols), "itos": dict(enumerate(symbols)), "stoi": number}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def gpt2_shards(root: Path) -> None:
    """Token shards, a HellaSwag file of two questions and a byte-level stand-in for tiktoken.

    The real tokenizer's table has to be downloaded; any encoding into the same number range will do.
    """
    import numpy as np

    shards = root / "edu_fineweb10B"
    shards.mkdir()
    for split in ("val", "train"):
        codes = np.frombuffer(prose(20_000, seed=len(split)).encode(), dtype=np.uint8)
        np.save(shards / f"edufineweb_{split}_000000.npy", codes.astype(np.uint16))
    questions = [
        {"ind": i, "ctx": prose(40, i).strip(), "label": i, "endings": [prose(20, 9 * i + j).strip() for j in range(4)]}
        for i in range(2)
    ]
    (root / "hellaswag").mkdir()
    (root / "hellaswag" / "hellaswag_val.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    (root / "tiktoken.py").write_text(
        '"""Bytes as tokens, in place of the downloaded table."""\n\n\n'
        "class Bytes:\n"
        "    def encode(self, text):\n"
        "        return list(text.encode())\n\n"
        "    def decode(self, codes):\n"
        "        return bytes(c % 256 for c in codes).decode(errors='replace')\n\n\n"
        "def get_encoding(name):\n"
        "    return Bytes()\n"
    )


def cifar10(folder: str, images_per_batch: int = 64, num_test: int = 100) -> Prepare:
    """CIFAR-10's pickled batches with random pixels."""

    def prepare(root: Path) -> None:
        target = root / folder / "cifar-10-batches-py"
        target.mkdir(parents=True)
        sizes = {f"data_batch_{i}": images_per_batch for i in range(1, 6)} | {"test_batch": num_test}
        rng = random.Random(0)
        for name, size in sizes.items():
            import numpy as np

            pixels = np.random.default_rng(len(name)).integers(0, 256, (size, 3072), dtype=np.uint8)
            labels = [rng.randrange(10) for _ in range(size)]
            (target / name).write_bytes(pickle.dumps({"data": pixels, "labels": labels}))
        names = [f"class{i}" for i in range(10)]
        (target / "batches.meta").write_bytes(pickle.dumps({"label_names": names}))

    return prepare


def mnist(folder: str, num_train: int = 512, num_test: int = 256) -> Prepare:
    """MNIST's four IDX files with random pixels."""

    def prepare(root: Path) -> None:
        target = root / folder / "MNIST" / "raw"
        target.mkdir(parents=True)
        rng = random.Random(0)
        for prefix, size in (("train", num_train), ("t10k", num_test)):
            images = struct.pack(">IIII", 0x803, size, 28, 28) + rng.randbytes(size * 784)
            labels = struct.pack(">II", 0x801, size) + bytes(rng.randrange(10) for _ in range(size))
            (target / f"{prefix}-images-idx3-ubyte").write_bytes(images)
            (target / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)

    return prepare


_WAVES = """
import numpy, torch
shift = numpy.random.default_rng(2).integers(-80, 80, (12, 1))
torch.save(numpy.sin((numpy.arange(40) + shift) / 20.0), "traindata.pt")
"""


def sine_waves(root: Path) -> None:
    """What `generate_sine_wave.py` makes, with fewer and shorter waves."""
    # In a child: where torch_tpu is installed, importing torch here would look for a TPU.
    subprocess.run(
        [sys.executable, "-c", _WAVES],
        cwd=root / "time_sequence_prediction",
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        check=True,
    )


def photographs(folder: str, **num_images: int) -> Prepare:
    """Folders of images of 256 x 256 with smooth random colours, one a keyword."""

    def prepare(root: Path) -> None:
        import numpy as np
        from PIL import Image

        for name, count in num_images.items():
            target = root / folder / name
            target.mkdir(parents=True)
            for number in range(count):
                coarse = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
                Image.fromarray(coarse).resize((256, 256)).save(target / f"{number}.png")

    return prepare


def nothing(root: Path) -> None:
    """For programs that bring or make their own data."""
