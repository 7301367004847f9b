"""The reference client lists and calls every tool over standard input and output, and over HTTP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import jsonschema
import pytest

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
anyio = pytest.importorskip("anyio")

from agents.toolkit import tools  # noqa: E402
from tests.agents.conftest import ROOT, commit, git  # noqa: E402

PROGRAM = 'print("done".uper())\n'
MODEL = "import torch\n\n\ndef make():\n    return torch.nn.Linear(4, 2).cuda()\n"
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("list_files", {}, "train.py"),
    ("read_file", {"path": "train.py"}, "uper"),
    ("search_text", {"words": "CUDA("}, "model.py:5"),
    ("scan", {}, "TPU104"),
    ("explain", {"id": "TPU104"}, "cuda"),
    ("search_knowledge", {"words": "GradScaler"}, "scaler"),
    ("diagnose", {"text": "AssertionError: Torch not compiled with CUDA enabled"}, "cuda-not-compiled"),
    ("apply_rules", {"rules": ["TPU104"]}, "1 commit"),
    ("edit_file", {"path": "train.py", "old": "uper", "new": "upper", "reason": "a typo"}, "committed"),
    ("show_diff", {}, "+print(\"done\".upper())"),
    ("run_program", {}, "stage runs: not run"),
    ("trace_program", {}, "nothing was seen"),
    ("profile_program", {"target": "no-such-tpu"}, "no-such-tpu"),
    ("undo", {}, "taken back: a typo"),
    ("verify_program", {}, "run the program again"),
]  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", train_py=PROGRAM, model_py=MODEL)


def command(repo: Path, *more: str) -> list[str]:
    entry = ["--entry", "python train.py", "--device", "cpu", "--name", "served"]
    return [sys.executable, "-m", "agents.cli", "mcp", str(repo), *entry, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


async def use_everything(session: Any) -> None:
    await session.initialize()
    offered = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(offered) == set(tools()) == {name for name, _, _ in CALLS}
    for name, arguments, said in CALLS:
        jsonschema.validate(arguments, offered[name].inputSchema)
        result = await session.call_tool(name, arguments)
        jsonschema.validate(result.structuredContent, offered[name].outputSchema)
        assert said in result.content[0].text, (name, result.content[0].text)
        assert result.structuredContent["text"] == result.content[0].text
    for name, arguments in (("read_file", {"path": "../x"}), ("read_file", {"file": "x"}), ("edit_file", {})):
        assert (await session.call_tool(name, arguments)).isError


def test_every_tool_over_standard_input_and_output(repo: Path) -> None:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk() -> None:
        program, *arguments = command(repo)
        server = StdioServerParameters(command=program, args=arguments, env=environment(), cwd=str(repo))
        async with AsyncExitStack() as stack:
            incoming, outgoing = await stack.enter_async_context(stdio_client(server))
            await use_everything(await stack.enter_async_context(mcp.ClientSession(incoming, outgoing)))

    anyio.run(talk)
    assert git(repo, "status", "--porcelain") == ""


def test_over_http_and_read_only(repo: Path) -> None:
    from mcp.client.streamable_http import streamablehttp_client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = command(repo, "--http", str(port), "--read-only")
    process = subprocess.Popen(served, cwd=repo, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None and "serving" in process.stderr.readline()
        wait_for(port)

        async def talk() -> None:
            async with AsyncExitStack() as stack:
                streams = await stack.enter_async_context(streamablehttp_client(f"http://127.0.0.1:{port}/mcp/"))
                session = await stack.enter_async_context(mcp.ClientSession(*streams[:2]))
                await session.initialize()
                names = {tool.name for tool in (await session.list_tools()).tools}
                assert names == set(tools()) - {"edit_file", "apply_rules", "undo"}
                found = await session.call_tool("scan", {})
                assert "TPU104" in found.content[0].text
                assert (await session.call_tool("undo", {})).isError

        anyio.run(talk)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")
