"""The options of all commands, one wording each; commands name them by their type."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

_program = partial(typer.Option, rich_help_panel="The program")
_migration = partial(typer.Option, rich_help_panel="The migration")
_output = partial(typer.Option, rich_help_panel="Output")


class DeviceName(StrEnum):
    """Values of --device."""

    AUTO = "auto"
    HARDWARE = "hardware"
    SIMULATED = "simulated"
    CPU = "cpu"


class NumericsName(StrEnum):
    """Values of --numerics."""

    FLOAT32 = "float32"
    TPU = "tpu"


class FormatName(StrEnum):
    """Values of --format."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


_ENTRY = "What to run afterwards; may be given several times. Default: torchtpu.toml, else the best one found."
_STEPS = "Stop each program after that many optimizer steps; 0 runs to the end."
_SETUP = "Run this in the copy first, such as a preparation of data; may be given several times."
_PYTHON = "Interpreter of the program; only torch and torch_tpu need to be in it."
_IDLE = "Take that much silence (no output, event or processor use) for a hang."
_MEMORY = "End it when its processes use more, such as 8G. Default: 4/5 of the machine."
_SANDBOX = "Run it without bubblewrap: with network, and writing where it likes."
_NUMERICS = "tpu rounds the inputs of matrix products to bfloat16, as a TPU does."
_DRY_RUN = "Make no branch and run nothing; the report says what would change."
_NO_VERIFY = "Do not compare with the original; forward, gradients, trains and preserves are then `not run`."
_RESUME = "Go on with a run that was interrupted, with its own options."

Entry = Annotated[list[str] | None, _program("--entry", "-e", metavar="COMMAND", help=_ENTRY)]
RequiredEntry = Annotated[
    list[str],
    _program("--entry", "-e", metavar="COMMAND", help="What to run in both folders; may be given several times."),
]
StepsOrDefault = Annotated[int | None, _program("--steps", min=0, metavar="N", help=f"{_STEPS} Default: 50.")]
Steps = Annotated[int, _program("--steps", min=0, metavar="N", help=_STEPS)]
Setup = Annotated[list[str] | None, _program("--setup", metavar="COMMAND", help=_SETUP)]
Device = Annotated[DeviceName, _program("--device", help="auto takes a TPU if there is one, else a simulated one.")]
Python = Annotated[str | None, _program("--python", metavar="PATH", help=_PYTHON)]
Timeout = Annotated[float | None, _program("--timeout", metavar="SECONDS", min=0.1, help="End it after that time.")]
IdleTimeout = Annotated[float | None, _program("--idle-timeout", metavar="SECONDS", min=0.1, help=_IDLE)]
Memory = Annotated[str | None, _program("--memory", metavar="SIZE", help=_MEMORY)]
NoSandbox = Annotated[bool, _program("--no-sandbox", help=_SANDBOX)]
Numerics = Annotated[NumericsName, _program("--numerics", help=_NUMERICS)]

UnsafeFixes = Annotated[bool, _migration("--unsafe-fixes", help="Also apply fixes that may change behaviour.")]
Select = Annotated[
    list[str] | None,
    _migration("--select", metavar="RULES", help="Only these rules: ids or beginnings, by commas."),
]
Ignore = Annotated[list[str] | None, _migration("--ignore", metavar="RULES", help="Leave these rules out.")]
Branch = Annotated[
    str | None, _migration("--branch", metavar="NAME", help="Name of the branch. Default: torchtpu/migrate-<run>.")
]
Out = Annotated[
    Path | None, _migration("--out", "-o", metavar="FILE", help="Write a patch to FILE and make no branch.")
]
DryRun = Annotated[bool, _migration("--dry-run", help=_DRY_RUN)]
Approve = Annotated[bool, _migration("--approve", help="Show the plan and ask before anything is changed.")]
Yes = Annotated[bool, _migration("--yes", "-y", help="Accept the plan of a run that waits for it.")]
Resume = Annotated[str | None, _migration("--resume", metavar="RUN", help=_RESUME)]

VerifySteps = Annotated[
    int | None,
    _migration("--verify-steps", metavar="N", min=1, help="Optimizer steps of each compared run. Default: 20."),
]
_TARGETED = "TPU slice to profile a step for, such as v6e-8: stages fits and fast. Default: they are `not run`."
TargetSlice = Annotated[str | None, _migration("--target", metavar="SLICE", help=_TARGETED)]
NoVerify = Annotated[bool, _migration("--no-verify", help=_NO_VERIFY)]

_MODEL = (
    "Language model for what rules and diagnosis do not cover; OPENAI_API_KEY or OPENAI_BASE_URL says where. auto: the"
    " one torchtpu.toml names. Default: TORCHTPU_MODEL, else none."
)
_REPLAY = "Do again what a model did, from its trajectory file; no model is asked."
Replay = Annotated[Path | None, _migration("--replay", metavar="FILE", help=_REPLAY)]
ModelName = Annotated[str | None, _migration("--model", metavar="NAME", help=_MODEL)]

Json = Annotated[bool, _output("--json", help="Print one JSON document and nothing else.")]
Verbose = Annotated[bool, _output("--verbose", "-v", help="Show the program's output and the native log.")]
Log = Annotated[Path | None, _output("--log", metavar="FILE", help="Keep its output in FILE too.")]
Format = Annotated[FormatName, _output("--format", help="sarif is version 2.1.0, for code scanning.")]
Output = Annotated[Path | None, _output("--output", metavar="FILE", help="Write to FILE instead of the screen.")]
