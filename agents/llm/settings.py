"""Which model is used, where it is, and within which limits: from options, the environment and torchtpu.toml."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr

from agents.llm.budget import Budget
from agents.settings import ModelTable, read
from tools.errors import UserError

AUTO = "auto"
CONTEXT = 120_000


class ModelSettings(BaseModel):
    """A model and how to reach it.

    Attributes:
        context: Characters of messages sent in one call; older ones are left out, evidence never.
        timeout: Seconds without a byte after which a request counts as lost.
        retries: Further requests after one that failed for a reason that may pass.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    base_url: str | None = None
    api_key: SecretStr = SecretStr("")
    budget: Budget = Budget()
    context: int = CONTEXT
    timeout: float = 120.0
    retries: int = 4

    @property
    def where(self) -> str:
        """The server, for people."""
        return self.base_url or "api.openai.com"


def configured(option: str | None, repository: Path | None = None) -> ModelSettings | None:
    """The model to use, or None when the user configured none.

    The user turns a model on, by `--model` or TORCHTPU_MODEL. A repository may choose its name only where the user
    said `auto`, and may only lower the limits: what it says must not send code, or a key, anywhere.

    Args:
        option: Value of --model.
        repository: Folder with a torchtpu.toml.

    Raises:
        UserError: A model is named, but neither a key nor a server.
    """
    name = option or os.environ.get("TORCHTPU_MODEL")
    if not name or name == "none":
        return None
    table = read(repository).model if repository else ModelTable()
    if name == AUTO:
        if table.name is None:
            raise UserError(
                "The model is to be the repository's choice (auto), but its torchtpu.toml names none.",
                "Name one with --model, or under [model] in torchtpu.toml.",
            )
        name = table.name
    key, base_url = os.environ.get("OPENAI_API_KEY", ""), os.environ.get("OPENAI_BASE_URL") or None
    if not key and base_url is None:
        raise UserError(
            f"The model {name} is named, but there is no key and no server for it.",
            "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own; see docs/models.md.",
        )
    own = Budget()
    asked = Budget(
        calls=table.calls or own.calls, tokens=table.tokens or own.tokens, seconds=table.seconds or own.seconds
    )
    # Servers on this machine want no key, but the client insists on one.
    return ModelSettings(model=name, base_url=base_url, api_key=SecretStr(key or "none"), budget=own.lowered(asked))
