"""Settings of a training run: defaults from config.yaml, overrides from the command line."""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Settings:
    corpus: str = "corpus/harbour.txt"
    out_dir: str = "runs"
    seed: int = 7
    # model
    num_layers: int = 4
    num_heads: int = 4
    width: int = 128
    context: int = 64
    dropout: float = 0.1
    # optimisation
    batch_size: int = 32
    max_iters: int = 2000
    learning_rate: float = 1e-3
    min_learning_rate: float = 1e-4
    warmup_iters: int = 50
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    clip_norm: float = 1.0
    # how often to do what
    log_every: int = 10
    eval_every: int = 250
    eval_batches: int = 8
    # speed
    num_workers: int = 2
    precision: str = "fp16"
    compile: bool = False
    resume: bool = False


def _flag(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")


def load(argv=None) -> Settings:
    parser = argparse.ArgumentParser(description="Train a character-level GPT.")
    parser.add_argument("--config", default=str(ROOT / "config.yaml"))
    for field in fields(Settings):
        kind = _flag if field.type is bool else field.type
        parser.add_argument("--" + field.name.replace("_", "-"), type=kind, default=None)
    args = vars(parser.parse_args(argv))
    values = yaml.safe_load(Path(args.pop("config")).read_text()) or {}
    values.update({name: value for name, value in args.items() if value is not None})
    return Settings(**values)
