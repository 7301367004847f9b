"""A chat in a real browser, with no model and with the scripted one: commands, approval, interruption, coming back."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import runs, sessions
from evals.scripted_model import Call, ScriptedModel, Turn
from tests.agents.chatting import edit
from tests.agents.conftest import commit, git
from tests.agents.test_chat_terminal import BROKEN, MASKS, SLOW
from tests.agents.web.serving import Served, ServedByCommand, keep

OPEN = "#send:not([disabled])"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", train_py=BROKEN, slow_py=SLOW)


def begin(tab, url: str, repo: Path, **fields: str) -> None:
    """Begin a chat by the form, and wait until it is open."""
    tab.goto(f"{url}/chats")
    for name, value in {"source": str(repo), "name": "one", **fields}.items():
        if name in ("mode", "device"):
            tab.select_option(f"form #{name}", value)
        else:
            tab.fill(f"form #{name}", value)
    tab.click("button:has-text('Begin')")
    tab.wait_for_selector(OPEN, timeout=90_000)


def say(tab, text: str, expected: str, seconds: float = 90) -> None:
    """Type a line, and wait for what it should bring."""
    tab.wait_for_selector(OPEN, timeout=seconds * 1000)
    before = tab.locator("#log > *").count()
    tab.fill("#words", text)
    tab.press("#words", "Enter")
    tab.wait_for_function(
        "([from, text]) => [...document.querySelectorAll('#log > *')].slice(from).some("
        "one => one.textContent.includes(text)) || document.querySelector('#standing').textContent.includes(text)",
        arg=[before, expected],
        timeout=seconds * 1000,
    )


def test_commands_work_and_a_tool_is_interrupted_but_not_the_chat(command: ServedByCommand, repo: Path, tab) -> None:
    begin(tab, command.url, repo, device="cpu")
    assert "no model configured" in tab.inner_text("#about")
    say(tab, "/scan", "train.py:3 TPU104")
    say(tab, "what is a gradient scaler for", "no model configured: this is what diagnosis and search know")
    tab.fill("#words", "/run python slow.py")
    tab.press("#words", "Enter")
    tab.wait_for_selector("#busy >> text=run: python slow.py", timeout=60_000)
    tab.keyboard.press("Escape")
    tab.wait_for_selector("text=Interrupted; the chat goes on", timeout=60_000)
    say(tab, "/patch", "TPU104")
    keep(tab, "chat")
    tab.reload()  # all of it is there again
    tab.wait_for_selector(OPEN)
    assert "Interrupted; the chat goes on" in tab.inner_text("#log") and "train.py:3 TPU104" in tab.inner_text("#log")
    say(tab, "/deliver", "branch torchtpu/chat-one-")
    with tab.expect_download() as export:
        tab.click("#export")
    text = Path(export.value.path()).read_text()
    assert "what is a gradient scaler for" in text and "+model = torch.nn.Linear(4, 2).to(" in text
    say(tab, "/quit", "The chat is closed")
    assert "torchtpu/chat-one-" in git(repo, "branch", "--list", "torchtpu/*")
    assert git(repo, "status", "--porcelain") == ""
    assert command.end() == 0


@pytest.mark.slow
def test_commands_are_completed_and_listed(served: Served, repo: Path, tab) -> None:
    begin(tab, served.url, repo, device="cpu")
    tab.keyboard.type("/pr")
    assert tab.inner_text("#completion li").startswith("/profile")
    tab.keyboard.press("Tab")
    assert tab.input_value("#words") == "/profile "
    tab.fill("#words", "")
    for word in ("/scan", "/run", "/trace", "/profile", "/patch", "/undo", "/diff", "/verify", "/report", "/explain"):
        assert tab.locator(f".words [data-word='{word}']").count() == 1
    say(tab, "/help", "/deliver")
    say(tab, "/undo", "nothing")
    say(tab, "/explain TPU104", "TPU104")
    say(tab, "/report", "the link Export")
    say(tab, "/nonsense", "There is no command /nonsense")
    tab.select_option("#mode", "read-only")
    tab.wait_for_selector("text=The mode is read-only now")
    say(tab, "/patch", "The session is read-only")


def test_a_change_of_the_model_is_asked_about_in_the_page(tmp_path: Path, repo: Path, tab, home: Path) -> None:
    change = edit("train.py", "print(model)", "print(model.weight.shape)")
    other = edit("train.py", "print(model.weight.shape)", "print(0)")
    script = [
        Turn(say="I will change it.", calls=[change]), Turn(say="Changed."),
        Turn(say="Once more.", calls=[other]), Turn(say="Then not."),
    ]  # fmt: skip
    with (
        ScriptedModel(script) as model,
        ServedByCommand(tmp_path, OPENAI_BASE_URL=model.base_url, TORCHTPU_TOKEN="a-token-that-nobody-knows") as server,
    ):
        tab.goto(server.url)
        tab.keyboard.type("a-token-that-nobody-knows")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("text=No runs yet")
        begin(tab, server.url, repo, device="cpu", model="m")
        assert "m at http://127.0.0.1" in tab.inner_text("#about")
        say(tab, "please print the shape", "I will change it.")
        tab.wait_for_selector("#ask >> text=model.weight.shape")
        keep(tab, "chat-approval")
        tab.reload()  # the question waits for whoever comes back
        tab.click("#ask >> text=Do it")
        tab.wait_for_selector("#standing >> text=1 commit; runs: not run; forward: not run")
        say(tab, "and now zero", "Once more.")
        tab.wait_for_selector("#no:focus")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("text=Then not.")
        assert "not allowed" in tab.inner_text("#log") and "1 commit;" in tab.inner_text("#standing")
        say(tab, "/undo", "taken back: because")


@pytest.mark.slow
def test_a_chat_of_the_terminal_is_gone_on_with_in_the_page(served: Served, repo: Path, cli, tab) -> None:
    from agents.progress import Silent
    from agents.state import Request

    sessions.create(Request(source=str(repo), created=runs.now(), device="cpu"), "older", Silent())
    tab.goto(f"{served.url}/chats")
    tab.click("a:has-text('older')")
    tab.wait_for_selector(OPEN, timeout=60_000)
    say(tab, "/scan", "TPU104")
    assert "is being worked on by another process" in cli("chat", "--export", "older").err
    assert "# Session older" in served.visit().get("/chats/older/export").text
    tab.click("#close")
    tab.wait_for_selector("text=The chat is closed")
    assert "/scan" in cli("chat", "--export", "older").out
    assert "/scan" in served.visit().get("/chats/older/export").text
    tab.click("text=Open it again")
    tab.wait_for_selector(OPEN, timeout=60_000)
    assert "train.py:3 TPU104" in tab.inner_text("#log")


@pytest.mark.slow
def test_a_chat_that_cannot_begin_says_why(served: Served, tmp_path: Path, repo: Path, tab) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    tab.goto(f"{served.url}/chats")
    tab.fill("form #source", str(tmp_path / "empty"))
    tab.click("button:has-text('Begin')")
    tab.wait_for_selector("#log [role=alert]", timeout=60_000)
    assert sessions.every() == []
    visitor = served.visit()
    assert "no name for a session" in visitor.fill("/chats", source=str(repo), name="../x").text
    assert visitor.get("/chats/none").status_code == 404
    assert visitor.tell("/chats/none/say", {"text": "x"}).status_code == 400
    assert visitor.tell("/chats/none/open", {}).status_code == 404
    refused = visitor.fill("/chats", source=str(repo), model="m")
    assert refused.status_code == 422 and "no key and no server" in refused.text


@pytest.mark.slow
def test_markup_in_a_chat_stays_text(served: Served, tmp_path: Path, tab) -> None:
    evil = "<img src=x onerror=window.pwned=1>"
    repo = commit(tmp_path / "repo", **{"train_py": f"import torch\nx = torch.ones(2).cuda()  # {evil}\n"})
    (repo / f"{evil}.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    commit(repo)
    begin(tab, served.url, repo, device="cpu")
    say(tab, f"{evil} <script>window.pwned=2</script>", "no model configured")
    say(tab, "/scan", "onerror")
    say(tab, "/patch", "TPU104")
    say(tab, "/diff", "onerror")
    tab.reload()
    tab.wait_for_selector(OPEN)
    assert evil in tab.inner_text("#log") and tab.evaluate("window.pwned") is None
    assert tab.locator("#log img, #log script").count() == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_broken_repository_is_debugged_to_forward_in_the_browser(command: ServedByCommand, tmp_path, tab) -> None:
    program = MASKS.replace("[rows, columns]", "")
    repo = commit(tmp_path / "masks", train_py=program, torchtpu__toml="[verify]\nsteps = 3\n")
    begin(tab, command.url, repo)
    say(tab, "/run", "stage runs: fail", 300)
    say(tab, "why did it fail?", "cuda-not-compiled")
    say(tab, "/patch", "TPU104")
    say(tab, "/run", "stage runs: pass", 300)
    say(tab, "/verify", "forward: pass", 700)
    assert "runs: pass" in tab.inner_text("#standing")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_failure_no_rule_fixes_is_debugged_in_the_browser_with_a_model(tmp_path: Path, tab, home: Path) -> None:
    repo = commit(tmp_path / "masks", train_py=MASKS)
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
    with ScriptedModel(script) as model, ServedByCommand(tmp_path, OPENAI_BASE_URL=model.base_url) as server:
        begin(tab, server.url, repo, model="m", mode="auto-safe")
        say(tab, "make it run on the TPU", "two-masks", 400)
        tab.click("#ask >> text=Do it", timeout=120_000)
        tab.wait_for_selector("text=Two boolean masks in one index were the cause.", timeout=700_000)
        tab.wait_for_selector("#standing >> text=forward: pass", timeout=60_000)
        assert "runs: pass" in tab.inner_text("#standing")
