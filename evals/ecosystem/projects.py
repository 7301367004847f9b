"""The table of repositories: where they are, which commit, what to run and with which data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evals.ecosystem import data
from evals.ecosystem.data import Prepare

# Sizes in build-nanogpt are constants of the script. The script that runs is the migrated file; only
# these constants are lowered in memory, and it is run under its own name.
_GPT2_SIZES = {
    "total_batch_size = 524288": "total_batch_size = 64",
    "B = 64 ": "B = 2 ",
    "T = 1024 ": "T = 32 ",
    "max_steps = 19073": "max_steps = {steps}",
    "val_loss_steps = 20": "val_loss_steps = 2",
}


# On the CPU its bfloat16 matrices take minutes a step: there the model itself is small.
_GPT2_SMALL = {"GPTConfig(vocab_size=50304)": "GPTConfig(vocab_size=50304, n_layer=2, n_head=2, n_embd=32)"}


def _gpt2(steps: int, model: Mapping[str, str] = MappingProxyType({})) -> str:
    changes = {old: new.format(steps=steps) for old, new in _GPT2_SIZES.items()} | dict(model)
    return (
        "python -c \"import pathlib, functools; name = 'train_gpt2.py'; "
        f"text = functools.reduce(lambda t, c: t.replace(*c), {list(changes.items())!r}, "
        "pathlib.Path(name).read_text()); "
        "__file__ = name; exec(compile(text, name, 'exec'), globals())\""
    )


# torchvision checks the MD5 of CIFAR-10's files, which made-up files cannot have; the program asks the terminal
# for its width when it is imported; and it sets no seed.
_CIFAR = (
    'python -c "import io, os, runpy, torch, torchvision.datasets.cifar as c; '
    "torch.manual_seed(0); c.check_integrity = lambda *a, **k: True; "
    "os.popen = lambda *a: io.StringIO('24 80'); runpy.run_path('main.py', run_name='__main__')\""
)


@dataclass(frozen=True)
class Project:
    """One program of one repository.

    Attributes:
        name: Unique name.
        repository: `owner/name` on GitHub.
        commit: The pinned commit.
        entry: Command that is run after the migration.
        cpu_entry: The same with the program's own way to ask for the CPU; None where it has none.
        folder: Subfolder of the repository that is migrated, as a user would give it.
        prepare: Lays synthetic data into the checkout.
        needs: Packages beyond those of the lock file; such a program may need another interpreter.
        steps: Optimizer steps after which the run is stopped.
        reduced: What was made smaller than in the original, in words.
        proof_entry: Command that is compared with the original's; empty where it is `entry`.
        proof_reduced: What that one makes smaller, in words; empty where it is `reduced`.
    """

    name: str
    repository: str
    commit: str
    entry: str
    cpu_entry: str | None
    prepare: Prepare
    folder: str = "."
    needs: tuple[str, ...] = ()
    steps: int = 10
    reduced: str = ""
    proof_entry: str = ""
    proof_reduced: str = ""


NANOGPT = "3adf61e154c3fe3fca428ad6bc3818b27a3b8291"
MINGPT = "37baab71b9abea1b76ab957409a1cc2fbfba8a26"
BUILD_NANOGPT = "6104ab1b53920f6e2159749676073ff7d815c1fa"
CIFAR = "49b7aa97b0c12fe0d4054e670403a16b6b834ddd"
EXAMPLES = "77f55b912142e11fcfdf5b530231fb9c52f181e8"

_NANOGPT = (
    "python train.py config/train_shakespeare_char.py "
    "--max_iters=20 --eval_iters=2 --eval_interval=10 --log_interval=1 "
    "--batch_size=4 --block_size=64 --n_layer=2 --n_head=2 --n_embd=64"
)
_WORDS = "--data data/small --emsize 32 --nhid 32 --epochs 1 --batch_size 4 --bptt 16 --log-interval 5"
_DCGAN = "--dataset fake --dry-run --batchSize 4 --ngf 8 --ndf 8 --workers 1 --manualSeed 1"
# The program loads a NumPy array with torch.load, which torch refuses by default since 2.6.
_SINE = "env TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 python train.py --steps 1"
_MINGPT = "python -m projects.adder.adder --trainer.max_iters=20 --data.ndigit=1"

PROJECTS = [
    Project(
        "nanoGPT", "karpathy/nanoGPT", NANOGPT, _NANOGPT, _NANOGPT + " --device=cpu --compile=False",
        data.nanogpt_characters, steps=20, reduced="2 layers, width 64, context 64, batch 4; compiled, its default",
    ),
    Project(
        "minGPT-adder", "karpathy/minGPT", MINGPT, _MINGPT, _MINGPT + " --trainer.device=cpu",
        data.nothing, steps=20, reduced="sums of one digit, 20 iterations",
    ),
    Project(
        "build-nanogpt", "karpathy/build-nanogpt", BUILD_NANOGPT, _gpt2(2), _gpt2(2, _GPT2_SMALL), data.gpt2_shards,
        steps=0,
        reduced="constants of the script, by the command and not in the file: batch 2 x 32 tokens instead of "
        "64 x 1024, 2 steps to the end; full 124M model, a small one on the CPU",
        proof_entry=_gpt2(20, _GPT2_SMALL), proof_reduced="2 layers, width 32, batch 2 x 32 tokens, 20 steps in all",
    ),
    Project(
        "pytorch-cifar", "kuangliu/pytorch-cifar", CIFAR, _CIFAR, _CIFAR,
        data.cifar10("data", images_per_batch=2, num_test=4),
        needs=("torchvision",), steps=2,
        reduced="10 training images, so one batch of 10 instead of 391 of 128",
    ),
    Project(
        "imagenet", "pytorch/examples", EXAMPLES,
        "python main.py --dummy -a resnet18 -b 4 -j 1 -p 1 --epochs 1 --seed 1",
        "python main.py --dummy -a resnet18 -b 4 -j 1 -p 1 --epochs 1 --seed 1 --no-accel", data.nothing,
        folder="imagenet", needs=("torchvision",), steps=3, reduced="batch 4, 3 steps",
        proof_entry="python main.py --dummy -a resnet18 -b 2 -j 1 -p 1 --epochs 1 --seed 1",
        proof_reduced="batch 2",
    ),
    Project(
        "dcgan", "pytorch/examples", EXAMPLES,
        f"python main.py --accel {_DCGAN}", f"python main.py {_DCGAN}", data.nothing,
        folder="dcgan", needs=("torchvision",), steps=4, reduced="batch 4, 8 filters",
        proof_entry=f"python main.py --accel {_DCGAN.replace('--dry-run ', '--niter 1 ')}",
    ),
    Project(
        "word_language_model", "pytorch/examples", EXAMPLES,
        f"python main.py --accel {_WORDS}", f"python main.py {_WORDS}",
        data.text_files(
            word_language_model__data__small__train_txt=6_000,
            word_language_model__data__small__valid_txt=1_500,
            word_language_model__data__small__test_txt=1_500,
        ),
        folder="word_language_model", steps=0, reduced="1,000 words, width 32",
    ),
    Project(
        "time_sequence_prediction", "pytorch/examples", EXAMPLES,
        _SINE, _SINE, data.sine_waves,
        folder="time_sequence_prediction", needs=("matplotlib",), steps=1,
        reduced="12 waves of 40 points, 1 step",
        proof_entry=_SINE.replace("--steps 1", "--steps 20"), proof_reduced="12 waves of 40 points, 20 steps",
    ),
    Project(
        "vae", "pytorch/examples", EXAMPLES, "python main.py --epochs 1 --log-interval 1",
        "python main.py --epochs 1 --log-interval 1 --no-accel", data.mnist("data"),
        folder="vae", needs=("torchvision",), steps=0, reduced="512 images",
        proof_entry="python main.py --epochs 1 --log-interval 1 --batch-size 24",
        proof_reduced="512 images in batches of 24",
    ),
    Project(
        "mnist", "pytorch/examples", EXAMPLES, "python main.py --epochs 1 --log-interval 1",
        "python main.py --epochs 1 --log-interval 1 --no-accel", data.mnist("data"),
        folder="mnist", needs=("torchvision",), steps=0, reduced="512 images",
        proof_entry="python main.py --epochs 1 --log-interval 1 --batch-size 24",
        proof_reduced="512 images in batches of 24",
    ),
]  # fmt: skip
