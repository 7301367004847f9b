"""The settings of the bot, read from the environment: the app, its secrets, GitHub's addresses, limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from agents.runs import home
from tools.errors import Exit, UserError

PREFIX = "TORCHTPU_GITHUB_"
DATABASE = "TORCHTPU_DATABASE_URL"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class BotSettings(BaseModel):
    """How the bot reaches GitHub, and how much it may do there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    app_id: int = Field(gt=0)
    private_key: SecretStr
    webhook_secret: SecretStr = Field(min_length=16)
    api_url: str = "https://api.github.com"
    web_url: str = Field(default="", description="where repositories are cloned from; made from api_url if empty")
    slug: str = Field(default="torchtpu-agent", pattern=r"^[a-z0-9][a-z0-9-]{0,98}$", description="the app's name")
    public_url: str = Field(default="", description="address of the pages, for links in comments")
    database_url: str = Field(default="", repr=False)
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    embedded_worker: bool = Field(default=True, description="`serve` works on jobs itself")
    unsandboxed: bool = Field(default=False, description="run programs also where there is no bubblewrap")
    job_minutes: float = Field(default=120.0, gt=0, description="after that a job is stopped")
    jobs_at_once: int = Field(default=1, ge=1, description="long jobs that one worker works on at once")
    repository_jobs: int = Field(default=20, ge=0, description="long jobs of a repository in 24 hours")
    installation_jobs: int = Field(default=100, ge=0, description="long jobs of an installation in 24 hours")
    outage_minutes: float = Field(default=60.0, gt=0, description="how long one request to GitHub is tried again")
    request_seconds: float = Field(default=20.0, gt=0, description="time limit of one request to GitHub")
    lease_seconds: float = Field(default=15.0, gt=0, description="a worker that is silent for so long counts as dead")
    poll_seconds: float = Field(default=0.2, gt=0, description="how often the queues are looked at")
    progress_seconds: float = Field(default=5.0, gt=0, description="least time between two edits of a comment")

    @property
    def database(self) -> str:
        """The database of jobs: the one named, else a file in the state directory."""
        if self.database_url:
            return self.database_url.replace("postgres://", "postgresql://", 1)
        return f"sqlite:///{home() / 'bot' / 'jobs.sqlite'}"

    @property
    def is_postgres(self) -> bool:
        """Whether several machines can share the jobs."""
        return self.database.startswith("postgresql")

    @property
    def clone_url(self) -> str:
        """The address in front of `/owner/name.git`."""
        if self.web_url:
            return self.web_url.rstrip("/")
        parts = urlsplit(self.api_url)
        if parts.hostname == "api.github.com":
            return "https://github.com"
        return f"{parts.scheme}://{parts.netloc}"


def configured(environment: Mapping[str, str] | None = None) -> BotSettings | None:
    """The bot's settings, or None where no app is named.

    Raises:
        UserError: A setting is missing or wrong.
    """
    environment = os.environ if environment is None else environment
    named = {name.removeprefix(PREFIX).lower(): text for name, text in environment.items() if name.startswith(PREFIX)}
    if "app_id" not in named:
        return None
    values: dict[str, object] = {**named, "private_key": _private_key(named)}
    values.pop("private_key_file", None)
    values["database_url"] = environment.get(DATABASE, "")
    try:
        settings = BotSettings.model_validate(values)
    except ValidationError as error:
        raise _wrong(error) from error
    for name in ("api_url", "web_url", "public_url"):
        check_address(f"{PREFIX}{name.upper()}", getattr(settings, name))
    return settings


def _private_key(named: Mapping[str, str]) -> str:
    if "private_key" in named:
        return named["private_key"].replace("\\n", "\n")
    path = named.get("private_key_file", "")
    if not path:
        raise UserError("The app's private key is missing.", f"Set {PREFIX}PRIVATE_KEY_FILE to its .pem file.")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The private key {path} cannot be read.", "Name the .pem file of the app.") from error


def _wrong(error: ValidationError) -> UserError:
    # The message must not repeat the value: it may be the secret.
    first = error.errors(include_input=False, include_url=False)[0]
    name = f"{PREFIX}{'_'.join(str(part) for part in first['loc']).upper()}"
    return UserError(f"{name}: {first['msg']}.", "docs/bot.md lists the settings.", Exit.BAD_INPUT)


def check_address(name: str, text: str) -> None:
    """Refuse an address that would send tokens somewhere unencrypted, or to no host at all.

    Raises:
        UserError: It is neither https nor on this machine, or it carries a login, a query or a fragment.
    """
    if not text:
        return
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"{name} is no address: {error}.", "Write it like https://api.github.com") from error
    if not parts.hostname or parts.username or parts.password or parts.query or parts.fragment or _odd(text):
        raise UserError(f"{name} is no plain address.", "Write it like https://github.example.org/api/v3")
    if not _is_safe(parts):
        raise UserError(f"{name} is not https.", "Tokens are sent there: use https. http is for this machine only.")


def _odd(text: str) -> bool:
    return "\\" in text or any(ord(letter) <= 32 or ord(letter) > 126 for letter in text)


def _is_safe(parts: SplitResult) -> bool:
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
