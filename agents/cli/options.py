"""Options that more than one command takes, with one wording each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

PROGRAM = "The program"
MIGRATION = "The migration"
OUTPUT = "Output"


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


Device = Annotated[
    DeviceName,
    typer.Option("--device", help="auto takes a TPU when there is one, else the simulated device.", rich_help_panel=PROGRAM),
]
Python = Annotated[
    str | None,
    typer.Option("--python", metavar="PATH", help="Interpreter of the program; only torch and torch_tpu need to be in it.",
                 rich_help_panel=PROGRAM),
]  # fmt: skip
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="End it after that time.", rich_help_panel=PROGRAM)
]
IdleTimeout = Annotated[
    float | None,
    typer.Option("--idle-timeout", metavar="SECONDS", min=0.1, help="Take that much silence (no output, event or CPU use) for a hang.",
                 rich_help_panel=PROGRAM),
]  # fmt: skip
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="End it when its processes use more, such as 8G. Default: 4/5 of the machine.",
                 rich_help_panel=PROGRAM),
]  # fmt: skip
NoSandbox = Annotated[
    bool, typer.Option("--no-sandbox", help="Run it without bubblewrap: with network, and writing where it likes.", rich_help_panel=PROGRAM)
]
Numerics = Annotated[
    NumericsName,
    typer.Option("--numerics", help="tpu rounds the inputs of matrix products to bfloat16, as a TPU does.", rich_help_panel=PROGRAM),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="RULES", help="Only these rules (ids or their beginnings, by commas).", rich_help_panel=MIGRATION),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="RULES", help="Leave these rules out.", rich_help_panel=MIGRATION)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=OUTPUT)]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the program's output and the native log.", rich_help_panel=OUTPUT)
]
