"""The commands of a chat: each a tool of the toolkit, or a word about the session itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents.chat import Chat
from agents.delivery import deliver
from agents.entries import from_texts
from agents.llm.loop import Leave, leave
from agents.modes import Mode
from agents.runs import write_whole
from agents.standing import standing
from agents.toolkit import (
    apply_rules,
    diagnose,
    explain,
    profile_program,
    run_program,
    scan,
    show_diff,
    trace_program,
    undo,
    verify_program,
)
from agents.toolkit.base import NoInput, Tool, ToolError, ToolResult
from agents.transcript import markdown
from tools import git
from tools.errors import UserError


@dataclass(frozen=True)
class Word:
    """One command.

    Attributes:
        usage: What may stand behind it.
        help: What it does.
        do: Does it, given the words behind it.
    """

    usage: str
    help: str
    do: Callable[[Chat, list[str]], ToolResult]


def obey(chat: Chat, line: str) -> ToolResult:
    """Do what a line that begins with a slash says."""
    try:
        name, *words = shlex.split(line)
    except ValueError as error:
        return ToolResult(ok=False, text=f"The command cannot be read: {error}.")
    word = WORDS.get(name)
    if word is None:
        near = [known for known in WORDS if known.startswith(name)]
        meant = f"Did you mean {' or '.join(near)}?" if near and name != "/" else "See /help."
        return ToolResult(ok=False, text=f"There is no command {name}. {meant}")
    try:
        return word.do(chat, words)
    except UserError as error:
        return ToolResult(ok=False, text=f"{error.message} {error.remedy}".strip())


def remember(chat: Chat, line: str, result: ToolResult) -> None:
    """Write a command and its result into the conversation; what is only about the conversation is no part of it."""
    if line.split()[0] not in ("/help", "/export", "/report"):
        chat.note(line, result.text, result.evidence)


def _use(chat: Chat, tool: Tool, arguments: object) -> ToolResult:
    """A tool, used by the person: what they type is approved, but not against their own read-only."""
    value = arguments if not isinstance(arguments, dict) else tool.input.model_validate(arguments)
    effect = tool.effect(value)
    if leave(effect, chat.desk.mode) is Leave.NO:
        return ToolResult(ok=False, text=f"The session is {chat.desk.mode}. Change that with: /mode ask")
    return tool.call(value, chat.bench)  # type: ignore[arg-type]  # made by the tool's own model above


def _scan(chat: Chat, words: list[str]) -> ToolResult:
    return _use(chat, scan.TOOL, {"rules": words})


def _run(chat: Chat, words: list[str]) -> ToolResult:
    _take_entry(chat, words)
    return _use(chat, run_program.TOOL, {})


def _take_entry(chat: Chat, words: list[str]) -> None:
    """A command that the person types is the session's entry from then on."""
    if words:
        chat.bench.update(entries=from_texts([shlex.join(words)], "typed", chat.bench.root))


def _patch(chat: Chat, words: list[str]) -> ToolResult:
    rules = [word for word in words if word != "--unsafe"]
    return _use(chat, apply_rules.TOOL, {"rules": rules, "unsafe": "--unsafe" in words})


def _undo(chat: Chat, _words: list[str]) -> ToolResult:
    return _use(chat, undo.TOOL, NoInput())


def _diff(chat: Chat, _words: list[str]) -> ToolResult:
    return _use(chat, show_diff.TOOL, NoInput())


def _verify(chat: Chat, _words: list[str]) -> ToolResult:
    return _use(chat, verify_program.TOOL, NoInput())


def _explain(chat: Chat, words: list[str]) -> ToolResult:
    if not words:
        return _use(chat, diagnose.TOOL, {})
    return _use(chat, explain.TOOL, {"id": words[0]})


def _report(chat: Chat, _words: list[str]) -> ToolResult:
    path = chat.bench.context.folder.path / "report.md"
    write_whole(path, markdown(chat))
    return ToolResult(text=f"written to {path}\n{standing(chat.bench)}", data={"path": str(path)})


def _export(chat: Chat, words: list[str]) -> ToolResult:
    if not words:
        return _report(chat, words)
    path = Path(words[0]).expanduser().absolute()
    if path.exists():
        raise ToolError(f"{path} exists.", "Choose another name.")
    if not path.parent.is_dir():
        raise ToolError(f"There is no folder {path.parent}.")
    write_whole(path, markdown(chat))
    return ToolResult(text=f"written to {path}", data={"path": str(path)})


def _deliver(chat: Chat, _words: list[str]) -> ToolResult:
    bench = chat.bench
    branch = f"torchtpu/chat-{bench.state.run_id}-{bench.tip()[:6]}"
    git.run_git(bench.tree, "branch", "--force", branch, "HEAD", private=True)
    request = bench.state.request.model_copy(update={"branch": branch})
    given = deliver(bench.state.model_copy(update={"request": request}), bench.context.folder)
    lines = [
        given.note,
        f"branch {given.branch}" if given.branch else "",
        f"patch {given.patch}" if given.patch else "",
    ]
    lines += [f"review   {given.review}" if given.review else "", f"discard  {given.discard}" if given.discard else ""]
    text = "\n".join(line for line in [*lines, standing(bench)] if line)
    return ToolResult(text=text, data=given.model_dump(mode="json"))


def _mode(chat: Chat, words: list[str]) -> ToolResult:
    if not words:
        return ToolResult(text=f"The mode is {chat.desk.mode}. Others: {', '.join(Mode)}.")
    if words[0] not in list(Mode):
        raise ToolError(f"There is no mode {words[0]}.", f"There are: {', '.join(Mode)}.")
    chat.desk.mode = Mode(words[0])
    return ToolResult(text=f"The mode is {chat.desk.mode} now.")


def _trace(chat: Chat, words: list[str]) -> ToolResult:
    _take_entry(chat, words)
    return _use(chat, trace_program.TOOL, {})


def _profile(chat: Chat, words: list[str]) -> ToolResult:
    if not words:
        raise ToolError("No target is given.", "Name a TPU slice: /profile v6e-8. See: torchtpu-agent targets")
    _take_entry(chat, words[1:])
    return _use(chat, profile_program.TOOL, {"target": words[0]})


def _help(_chat: Chat, _words: list[str]) -> ToolResult:
    lines = [f"{f'{name} {word.usage}'.strip():<26} {word.help}" for name, word in WORDS.items()]
    lines.append(
        "Anything else goes to the model where one is configured, else to diagnosis and search. Paste an error."
    )
    return ToolResult(text="\n".join(lines))


def _quit(_chat: Chat, _words: list[str]) -> ToolResult:
    raise EOFError


WORDS: dict[str, Word] = {
    "/scan": Word("[RULES]", "what needs a change", _scan),
    "/run": Word("[COMMAND]", "run the program on the device, in a disposable copy", _run),
    "/trace": Word("[COMMAND]", "what ran where, and what made it wait", _trace),
    "/profile": Word("TARGET [COMMAND]", "estimated time and memory on a TPU", _profile),
    "/patch": Word("[RULES] [--unsafe]", "apply the fixes of rules, one commit a rule", _patch),
    "/undo": Word("", "take the newest commit back", _undo),
    "/diff": Word("", "everything that was changed", _diff),
    "/verify": Word("", "judge stage by stage, against the original (minutes)", _verify),
    "/report": Word("", "write the session down as Markdown", _report),
    "/explain": Word("[RULE | ENTRY]", "a rule, an entry, or why the last run failed", _explain),
    "/mode": Word("[MODE]", "ask, auto-safe or read-only", _mode),
    "/deliver": Word("", "give the commits to your repository as a branch", _deliver),
    "/export": Word("[FILE]", "as /report, to a file of yours", _export),
    "/help": Word("", "this list", _help),
    "/quit": Word("", "end; the session is kept", _quit),
}
