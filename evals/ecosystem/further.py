"""More programs of other people, which only the comparison with their originals is made of."""

from __future__ import annotations

from evals.ecosystem import data
from evals.ecosystem.projects import EXAMPLES, Project

MAKEMORE = "988aa59e4d8fefa526d06f3b453ad116258398d4"
LECTURE = "52201428ed7b46804849dea0b3ccf0de9df1a5c3"
YUNJEY = "0500d3df5a2a8080ccfccbc00aca0eacc21818db"
BEGINNER = "a57dd7ea35c9965a41f4963dee62d38884f92a65"
MORVAN = "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7"


# The program is told its device by an option whose default is the CPU: it gets the accelerator's name, whichever it is.
def _makemore(kind: str, more: str = "") -> str:
    options = f"-i names.txt -o out-{kind} --type {kind} -n 0 -b 8 --n-embd 32 --max-steps 20 {more}".split()
    return (
        'python -c "import runpy, sys, torch; '
        f"sys.argv = ['makemore.py', '--device', torch.accelerator.current_accelerator().type, *{options!r}]; "
        "runpy.run_path('makemore.py', run_name='__main__')\""
    )


def _yunjey(name: str, folder: str) -> Project:
    return Project(
        name, "yunjey/pytorch-tutorial", YUNJEY, "python main.py", None, data.mnist("tutorials/data", 3200, 100),
        folder=f"tutorials/{folder}", needs=("torchvision",), reduced="3,200 images, 20 steps",
    )  # fmt: skip


FURTHER = [
    Project(
        "makemore-transformer", "karpathy/makemore", MAKEMORE, _makemore("transformer", "--n-layer 2"), None,
        data.nothing,
        reduced="2 layers, width 32, batch 8, 20 steps",
    ),
    Project(
        "makemore-mlp", "karpathy/makemore", MAKEMORE, _makemore("mlp"), None, data.nothing,
        reduced="width 32, batch 8, 20 steps",
    ),
    Project(
        "lecture-bigram", "karpathy/ng-video-lecture", LECTURE, "python bigram.py", None, data.nothing,
        reduced="20 of 3,000 steps",
    ),
    _yunjey("tutorial-feedforward", "01-basics/feedforward_neural_network"),
    _yunjey("tutorial-vae", "03-advanced/variational_autoencoder"),
    _yunjey("tutorial-gan", "03-advanced/generative_adversarial_network"),
    _yunjey("tutorial-cnn", "02-intermediate/convolutional_neural_network"),
    Project(
        "beginner-logistic", "L1aoXingyu/pytorch-beginner", BEGINNER, "python Logistic_Regression.py", None,
        data.mnist("02-Logistic Regression/data", 1600, 100),
        folder="02-Logistic Regression", needs=("torchvision",), reduced="1,600 images, 20 steps",
    ),
    Project(
        "beginner-autoencoder", "L1aoXingyu/pytorch-beginner", BEGINNER, "python simple_autoencoder.py", None,
        data.mnist("08-AutoEncoder/data", 3200, 100),
        folder="08-AutoEncoder", needs=("torchvision",),
        reduced="3,200 images, 20 steps, which end before the `loss.data[0]` that torch no longer has",
    ),
    Project(
        "morvan-gpu", "MorvanZhou/PyTorch-Tutorial", MORVAN, "python 502_GPU.py", None,
        data.mnist("tutorial-contents/mnist", 1200, 64),
        folder="tutorial-contents", needs=("torchvision",), reduced="1,200 images, 64 to test with, 20 steps",
    ),
    Project(
        "mnist_forward_forward", "pytorch/examples", EXAMPLES,
        "python main.py --epochs 20 --train_size 64 --test_size 32", None,
        data.mnist("mnist_forward_forward/data", 128, 64),
        folder="mnist_forward_forward", needs=("torchvision",), reduced="64 images, 20 epochs a layer",
    ),
    Project(
        "super_resolution", "pytorch/examples", EXAMPLES,
        "python main.py --accel --upscale_factor 4 --batchSize 1 --nEpochs 1 --threads 0 --lr 0.001", None,
        data.photographs("super_resolution/dataset/BSDS300/images", train=24, test=2),
        folder="super_resolution", needs=("torchvision",), reduced="24 images, batch 1",
    ),
]  # fmt: skip
