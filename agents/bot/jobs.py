"""A job: what one delivery asks for, small and typed, since it is kept in the database."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agents.bot.commands import Command
from agents.bot.names import Branch, Login, Owner, Repository, Sha

Kind = Literal["command", "mistake", "change", "push", "installed", "removed"]


class Job(BaseModel):
    """One thing to do.

    Attributes:
        id: That of the delivery, so that a redelivery is the same job.
        kind: `command` of a comment, `mistake` in one, `change` of a pull request, `push` to a branch, or an
            installation that came or went.
        number: The issue or pull request it belongs to, 0 for none.
        comment: The comment that asked.
        said: What to answer to a mistake.
        sha: The commit that is looked at.
        base: The commit it is compared with.
        fork: The commit comes from another repository.
        again: Somebody asked for it once more, so that an earlier result does not count.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    kind: Kind
    installation: int
    owner: Owner = "none"
    repository: Repository = "none"
    number: int = 0
    is_pull: bool = False
    sender: Login = "none"
    comment: int = 0
    command: Command | None = None
    said: str = ""
    sha: Sha | None = None
    base: Sha | None = None
    branch: Branch | None = None
    fork: bool = False
    again: bool = False

    @property
    def place(self) -> str:
        """The repository as `owner/name`."""
        return f"{self.owner}/{self.repository}"

    @property
    def run(self) -> str:
        """Id of the run, branch and folder of this job: hexadecimal digits only, whatever the delivery's id holds."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:12]

    @property
    def is_long(self) -> bool:
        """Whether it clones the repository."""
        return self.kind in {"change", "push"} or (self.command is not None and self.command.is_long)

    @property
    def title(self) -> str:
        """How comments and lists call it."""
        if self.command is None:
            return {"change": "scan of the change", "push": "scan of the push"}.get(self.kind, self.kind)
        return f"{self.command.name} {self.command.subject}".strip()
