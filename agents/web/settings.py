"""How the server is reached, and who may: the settings of `torchtpu-agent serve`."""

from __future__ import annotations

import ipaddress

from pydantic import BaseModel, ConfigDict, SecretStr

from tools.errors import UserError

SHORTEST_TOKEN = 16


class ServeSettings(BaseModel):
    """Settings of one server.

    Attributes:
        host: Address that is bound.
        token: What a person signs in with; empty where everybody on this machine may.
        most_runs: Migrations that are worked on at once.
        most_chats: Chats that are open at once.
    """

    model_config = ConfigDict(frozen=True)

    host: str = "127.0.0.1"
    port: int = 8700
    token: SecretStr = SecretStr("")
    most_runs: int = 2
    most_chats: int = 8

    @property
    def wants_sign_in(self) -> bool:
        """Whether nobody gets in without the token."""
        return bool(self.token.get_secret_value())


def check(settings: ServeSettings) -> None:
    """Refuse what would let strangers run programs here.

    Raises:
        UserError: The address can be reached from elsewhere and no token is set, or the token is too short.
    """
    token = settings.token.get_secret_value()
    if token and len(token) < SHORTEST_TOKEN:
        raise UserError(
            f"The token has {len(token)} characters, which can be guessed.",
            f"Take {SHORTEST_TOKEN} or more: python3 -c 'import secrets; print(secrets.token_urlsafe(24))'",
        )
    if not token and not is_loopback(settings.host):
        raise UserError(
            f"{settings.host} can be reached from other machines, and whoever reaches the server can run programs.",
            "Set TORCHTPU_TOKEN or --token-file, or bind 127.0.0.1.",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
