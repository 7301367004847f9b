"""Tool: a change to one file."""

from __future__ import annotations

import difflib

from pydantic import BaseModel, Field

from agents.toolkit.base import Effect, Tool, ToolError, ToolResult, shortened
from agents.toolkit.bench import Bench, read_text

_LARGEST = 400_000


class Input(BaseModel):
    """Arguments."""

    path: str = Field(description="relative to the top of the repository")
    old: str = Field(description="text that stands exactly once in the file; empty to make a new file")
    new: str = Field(description="what takes its place")
    reason: str = Field(min_length=3, max_length=300, description="why, in one sentence; it becomes the commit's title")


def edit_file(arguments: Input, bench: Bench) -> ToolResult:
    """Replace a passage of a file in the private copy and commit it.

    Refused whatever the reason: changing or deleting tests, stubbing code, catching an error and going on, ending the
    program early, leaving out work, files outside the repository.
    """
    if bench.done_before():
        return ToolResult(text="This edit was made before the interruption.", data={"path": arguments.path})
    text = read_text(bench.path(arguments.path))
    new = changed(text, arguments)
    sha = bench.commit({arguments.path.removeprefix("./"): new}, arguments.reason)
    patch = "".join(difflib.unified_diff((text or "").splitlines(keepends=True), new.splitlines(keepends=True), n=2))
    return ToolResult(
        text=f"committed {sha[:10]}\n{shortened(patch, 4000)}", data={"path": arguments.path, "commit": sha}
    )


def changed(text: str | None, arguments: Input) -> str:
    """The file's text after the edit.

    Raises:
        ToolError: The passage is not there, or not only once.
    """
    if text is None:
        if arguments.old:
            raise ToolError(f"There is no file {arguments.path}; leave `old` empty to make one.")
        return arguments.new
    if not arguments.old:
        raise ToolError(f"{arguments.path} exists; give the passage to replace in `old`.")
    count = text.count(arguments.old)
    if count != 1:
        said = "is not in" if count == 0 else f"stands {count} times in"
        raise ToolError(f"The passage {said} {arguments.path}; read the file and give one that stands there once.")
    new = text.replace(arguments.old, arguments.new)
    if len(new) > _LARGEST:
        raise ToolError(f"{arguments.path} would be longer than {_LARGEST} characters.")
    if new == text:
        raise ToolError("Old and new are the same.")
    return new


TOOL = Tool("edit_file", Input, edit_file, lambda _arguments: Effect.EDIT)
