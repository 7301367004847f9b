"""TPU821: a device written as CUDA in a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.configs import FILES, settings
from tools.code.edits import Edit, Fix
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.rules.base import Invalid, Match, TextRule, Valid

_CUDA = re.compile(r"cuda(:\d+)?")
_DEVICE = re.compile(r"(^|_)(device|devices|dev|device_type|device_map)$|^(map_location|accelerator)$")


class ResolveConfigDevice(TextRule):
    """``device: cuda``, ``accelerator: gpu`` or ``backend: nccl`` in a YAML, JSON, TOML or INI file.

    What the value means is up to the program that reads it. Lightning's ``accelerator: gpu`` has the neutral spelling
    ``auto``, which an unsafe fix writes; the others are reported, since a program that hands ``cuda`` to ``torch.device``
    works on CUDA only with exactly that.

    Not covered: values in interpolations (``${oc.env:DEVICE,cuda}``) and lists.
    """

    ID = "TPU821"
    NAME = "resolve-config-device"
    FAMILY = "A"
    GRADE = Grade.ADVICE
    MESSAGE = "a configuration file asks for CUDA"
    TRIGGERS = ("cuda", "gpu", "nccl")
    COVERS = ("A15", "D4")
    FILES = FILES
    VALID = (
        Valid("# device: cuda\ndevice: auto\ncuda: true\n", "config.yaml"),
        Valid('{"device": "cpu", "text": "set device: cuda, or not"}\n', "config.json"),
        Valid("accelerator: auto\nbackend: gloo\n", "config.yaml"),
    )
    INVALID = (
        Invalid("train:\n  device: cuda:0  # first\n  eval_device: 'cuda'\n", None, count=2, path="conf/train.yaml"),
        Invalid('{"model": {"device": "cuda"}, "backend": "nccl"}\n', None, count=2, path="config.json"),
        Invalid('[train]\ndevice = "cuda"\n', None, path="config.toml"),
        Invalid(
            "trainer:\n  accelerator: gpu # one\n",
            "trainer:\n  accelerator: auto # one\n",
            unsafe=True,
            path="trainer.yaml",
        ),
    )

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields settings whose key means a device or a backend and whose value is CUDA's."""
        for setting in settings(source):
            key, value = setting.normal_key, setting.value.lower()
            if key == "accelerator" and value in ("gpu", "cuda"):
                fix = Fix((Edit(setting.start, setting.end, "auto"),))
                note = "Lightning's `auto` takes what the machine has; another program may not know the word"
                yield Match(setting.start, setting.end, fix=fix, grade=Grade.UNSAFE, note=note)
            elif _DEVICE.search(key) and (_CUDA.fullmatch(value) or value == "gpu"):
                note = "give the program's TPU or automatic spelling here, or on the command line of a TPU run"
                yield Match(setting.start, setting.end, note=note)
            elif "backend" in key and value == "nccl":
                note = "on a TPU the process group's backend is tpu_dist; leave it out to let torch choose"
                yield Match(setting.start, setting.end, "a configuration file asks for nccl", note=note)
