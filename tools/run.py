"""Runs a program on the device in a supervised child process and says how it ended."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.commands import Command
from torchtpu.proof.spec import Proof

if TYPE_CHECKING:
    from torchtpu.launch import RunResult

GIB = 2**30


class RunRequest(BaseModel):
    """What to run, where, and within which limits. A limit of None is the default of the machine."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    command: Command
    cwd: Path
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: Path | None = Field(default=None, description="interpreter of the program")
    steps: int | None = Field(default=None, description="stop after that many optimizer steps")
    timeout: float | None = None
    idle_timeout: float | None = None
    memory: int | None = Field(default=None, description="bytes of all its processes together")
    disk: int | None = 50 * GIB
    output: int | None = 64 * 2**20
    sandbox: bool = True
    writable: list[Path] = []
    numerics: Literal["float32", "tpu"] = "float32"
    verbose: bool = False
    log: Path | None = None
    proof: Proof | None = Field(default=None, description="the run's part in a comparison")


class RunOutput(BaseModel):
    """How a program ended, as `torchtpu.launch` saw it."""

    model_config = ConfigDict(extra="allow")

    outcome: str
    explanation: str
    exit_code: int | None = None
    signal: str | None = None
    duration: float = 0.0
    device: dict[str, Any] | None = None
    steps: int = 0
    device_steps: int = 0
    device_ops: int | None = None
    losses: list[float] = []
    warnings: list[dict[str, Any]] = []
    exception: dict[str, Any] | None = None
    native_tail: list[str] = []
    fatal: str | None = None
    backend_frame: str | None = None
    loaded: list[str] = []
    output_tail: str = ""
    sandboxed: bool = False
    sandbox_note: str = ""
    without_torch: bool = False
    log: str | None = None


def run(
    request: RunRequest,
    on_event: Callable[[Any], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> RunOutput:
    """Run a program to its end, to its step limit or to another limit, and tell how it ended.

    Args:
        request: What to run.
        on_event: Called with each event of the program as it happens.
        on_output: Called with its output as it comes.

    Raises:
        KeyboardInterrupt: The user ended it.
    """
    from torchtpu.launch import LaunchSpec, launch

    spec = LaunchSpec(
        argv=request.command.argv,
        cwd=request.cwd,
        env=request.command.env,
        device=request.device,
        python=request.python,
        max_steps=request.steps or None,
        time_limit=request.timeout,
        idle_limit=request.idle_timeout,
        memory_limit=request.memory or most_memory(),
        disk_limit=request.disk,
        output_limit=request.output,
        sandbox="auto" if request.sandbox else "off",
        writable=request.writable,
        numerics=request.numerics,
        verbose=request.verbose,
        log=request.log,
        proof=request.proof,
    )
    output = _output(launch(spec, on_event, on_output))
    if output.outcome == "interrupted":
        raise KeyboardInterrupt
    return output


def _output(result: RunResult) -> RunOutput:
    # By way of JSON, which is also how a stored result is read back.
    # A program may say what is no text (half a surrogate pair); it is shown as a question mark.
    text = json.dumps(result.to_json(), default=str, ensure_ascii=False)
    return RunOutput.model_validate_json(text.encode("utf-8", "replace"))


def sandbox_available() -> bool:
    """Whether programs can be kept from the network and the rest of the file system here."""
    from torchtpu.launcher.sandbox import probe

    return probe() is None


def device_line(device: Literal["auto", "hardware", "simulated", "cpu"], python: Path | None) -> str:
    """The device a program would run on and why, or why there is none; without importing torch."""
    from torchtpu.device import DeviceError, choose

    try:
        info = choose(device, python=python)
    except DeviceError as error:
        return f"none: {error}"
    return f"{info.kind} ({info.name}; {info.why})"


def most_memory() -> int:
    """Four fifths of this machine's memory: a program that wants more ends before the machine does."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5


def command_line(request: RunRequest) -> str:
    """The `torchtpu-agent run` command that does the same again."""
    words = ["torchtpu-agent", "run", f"--device={request.device}"]
    if request.steps:
        words.append(f"--steps={request.steps}")
    if request.python:
        words.append(f"--python={request.python}")
    if request.numerics != "float32":
        words.append(f"--numerics={request.numerics}")
    if not request.sandbox:
        words.append("--no-sandbox")
    variables = [f"{name}={value}" for name, value in request.command.env.items()]
    argv = [*(["env", *variables] if variables else []), *request.command.argv]
    return f"cd {shlex.quote(str(request.cwd))} && {shlex.join([*words, '--', *argv])}"
