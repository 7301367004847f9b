"""A chat in a real pseudo-terminal: typing, completion of a session, interruption, approval, death and resumption."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evals.scripted_model import Call, ScriptedModel, Turn
from tests.agents.chatting import edit
from tests.agents.conftest import commit, git
from tests.agents.pseudo_terminal import PseudoTerminal

BROKEN = "import torch\n\nmodel = torch.nn.Linear(4, 2).cuda()\nprint(model)\n"
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(300)\n"
MASKS = """import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.tensor([True, False, True, False, True, False, True, False], device="cuda")
columns = torch.tensor([True, True, True, True], device="cuda")
for step in range(3):
    x = torch.randn(8, 4, device="cuda")
    picked = model(x)[rows, columns]
    loss = picked.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", train_py=BROKEN, slow_py=SLOW)


def start(repo: Path, *arguments: str, **env: str) -> PseudoTerminal:
    return PseudoTerminal(["chat", str(repo), "--device", "cpu", "--name", "one", *arguments], repo, env)


def test_commands_work_and_ctrl_c_ends_a_tool_but_not_the_session(repo: Path) -> None:
    with start(repo) as terminal:
        assert "no model configured" in terminal.until("/quit to end")
        terminal.type("/scan")
        terminal.until("train.py:3 TPU104")
        terminal.type("/run python slow.py")
        terminal.until("run     python slow.py", 60)  # the moving line: the program is at work
        terminal.press(b"\x03")
        terminal.until("Interrupted; the session goes on", 60)
        terminal.type("what is a gradient scaler for")
        terminal.until("scaler-on-tpu")
        terminal.until("no model configured: this is what diagnosis and search know")
        terminal.type("/patch")
        terminal.until("TPU104")
        terminal.type("/deliver")
        terminal.until("branch torchtpu/chat-one-")
        terminal.until("forward: not run\n>")  # Ctrl-D is one key to the prompt, and nothing to what comes before it
        terminal.press(b"\x04")
        terminal.until("kept")
        assert terminal.ended() == 0
    assert "torchtpu/chat-one-" in git(repo, "branch", "--list", "torchtpu/*")
    assert git(repo, "status", "--porcelain") == ""


def test_a_change_of_the_model_is_asked_about(repo: Path) -> None:
    change = edit("train.py", "print(model)", "print(model.weight.shape)")
    script = [Turn(say="I will change it.", calls=[change]), Turn(say="Changed.")]
    with ScriptedModel(script) as server, start(repo, "--model", "m", OPENAI_BASE_URL=server.base_url) as terminal:
        terminal.until("/quit to end")
        terminal.type("please print the shape")
        terminal.until("I will change it.")
        terminal.until("Do it? [y/N]")
        terminal.type("y")
        terminal.until("committed")
        terminal.until("1 commit; runs: not run; forward: not run")
        terminal.type("/undo")
        terminal.until("taken back: because")
        terminal.type("/quit")
        assert terminal.ended() == 0


def test_a_session_killed_in_a_tool_goes_on_where_it_was(repo: Path, cli) -> None:
    script = [
        Turn(calls=[edit("train.py", "print(model)", "print(1)")]),
        Turn(calls=[Call(name="run_program")]),
    ]
    with ScriptedModel(script) as server:
        arguments = ("--model", "m", "--mode", "auto-safe", "--entry", "python slow.py")
        with start(repo, *arguments, OPENAI_BASE_URL=server.base_url) as terminal:
            terminal.until("/quit to end")
            terminal.type("run it")
            terminal.until("Do it? [y/N]")
            terminal.type("y")
            terminal.until("-> run_program")
            terminal.until("run     python slow.py", 60)
            os.killpg(terminal.process.pid, signal.SIGKILL)
    slow = repo.parent / "state" / "chats" / "one" / "tree" / "slow.py"
    assert slow.is_file()
    with ScriptedModel([Turn(say="It was slow.")]) as server:
        resumed = ["chat", "--resume", "one", "--model", "m", "--mode", "auto-safe"]
        with PseudoTerminal(resumed, repo, {"OPENAI_BASE_URL": server.base_url}) as terminal:
            terminal.until("going on with it")
            terminal.until("-> run_program")
            terminal.until("run     python slow.py", 60)
            terminal.press(b"\x03")
            terminal.until("Interrupted; the session goes on", 60)
            terminal.type("then tell me")
            terminal.until("It was slow.")
            terminal.until("1 commit;")
            terminal.type("/quit")
            assert terminal.ended() == 0
        roles = [message["role"] for message in server.requests[0]["messages"]]
        assert roles[:6] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    exported = cli("chat", "--export", "one")
    assert "**You**" in exported.out and "run it" in exported.out and "+print(1)" in exported.out
    assert "one" in cli("chat", "--list").out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_broken_repository_is_debugged_to_forward_without_a_model(tmp_path: Path) -> None:
    program = MASKS.replace("[rows, columns]", "")
    repo = commit(tmp_path / "repo", train_py=program)
    with PseudoTerminal(["chat", str(repo), "--verify-steps", "3"], repo, {"OMP_NUM_THREADS": "1"}) as terminal:
        terminal.until("/quit to end")
        terminal.type("/run")
        terminal.until("stage runs: fail")
        terminal.type("why did it fail?")
        terminal.until("cuda-not-compiled")
        terminal.until("To apply the fixes of rules: /patch")
        terminal.type("/patch")
        terminal.until("TPU104")
        terminal.type("/run")
        terminal.until("stage runs: pass", 300)
        terminal.type("/verify")
        terminal.until("forward   pass", 600)
        terminal.type("/quit")
        assert terminal.ended() == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_failure_no_rule_fixes_is_debugged_to_forward_with_the_scripted_model(tmp_path: Path) -> None:
    repo = commit(tmp_path / "repo", train_py=MASKS)
    new = "[rows.nonzero().squeeze(1), columns.nonzero().squeeze(1)]"
    script = [
        Turn(say="First the rules.", calls=[Call(name="apply_rules")]),
        Turn(calls=[Call(name="run_program")]),
        Turn(calls=[Call(name="diagnose")]),
        Turn(calls=[edit("train.py", "[rows, columns]", new, "Index with positions, which the TPU takes")]),
        Turn(calls=[Call(name="run_program")]),
        Turn(calls=[Call(name="verify_program")]),
        Turn(say="Two boolean masks in one index were the cause."),
    ]
    arguments = ["chat", str(repo), "--verify-steps", "3", "--model", "m", "--mode", "auto-safe"]
    with ScriptedModel(script) as server:
        env = {"OMP_NUM_THREADS": "1", "OPENAI_BASE_URL": server.base_url}
        with PseudoTerminal(arguments, repo, env) as terminal:
            terminal.until("/quit to end")
            terminal.type("make it run on the TPU")
            terminal.until("stage runs: fail", 300)
            terminal.until("two-masks", 60)
            terminal.until("Do it? [y/N]")
            terminal.type("y")
            terminal.until("stage runs: pass", 300)
            terminal.until("Two boolean masks in one index were the cause.", 600)
            shown = terminal.until("highest stage reached")
            assert "runs: pass" in shown and "forward: pass" in shown
            terminal.type("/quit")
            assert terminal.ended() == 0
