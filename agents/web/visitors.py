"""Who is at the page: a signed cookie, the token behind it, and the word that a form has to bring back."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

COOKIE = "torchtpu"
LIFETIME = 7 * 24 * 3600
MOST_FAILURES = 10
FAILURE_SECONDS = 60.0


@dataclass(frozen=True)
class Visitor:
    """Somebody with a cookie of ours.

    Attributes:
        id: Made by us for this sign-in; never taken from a request that we did not sign.
        expires: When the cookie ends, seconds since 1970.
        signed_in: Whether the token was shown for it.
    """

    id: str
    expires: int
    signed_in: bool


class Visitors:
    """Makes cookies and reads them.

    A cookie is signed with a key made of a secret file and the token: another token ends all sign-ins.

    Args:
        secret: Random bytes that outlive the process.
        token: What signs in; empty where nobody has to.
    """

    def __init__(self, secret: bytes, token: SecretStr) -> None:
        self._token = token.get_secret_value()
        self._key = hmac.new(secret, b"cookie\0" + self._token.encode(), hashlib.sha256).digest()
        self._ended: dict[str, int] = {}
        self._failures: deque[float] = deque()
        self._lock = threading.Lock()

    def new(self, *, signed_in: bool) -> Visitor:
        """Somebody new, with an id that nobody knew before."""
        return Visitor(secrets.token_urlsafe(24), int(time.time()) + LIFETIME, signed_in)

    def cookie(self, visitor: Visitor) -> str:
        """The value of a visitor's cookie."""
        said = f"{visitor.id}.{visitor.expires}.{int(visitor.signed_in)}"
        return f"{said}.{self._mark('visitor', said)}"

    def read(self, cookie: str) -> Visitor | None:
        """The visitor of a cookie; None where it is not ours, has ended, or was signed out."""
        said, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode(), self._mark("visitor", said).encode()):
            return None
        name, expires, signed_in = said.split(".")
        if int(expires) < time.time() or name in self._ended:
            return None
        return Visitor(name, int(expires), signed_in == "1")

    def end(self, visitor: Visitor) -> None:
        """Sign somebody out: the cookie counts no more, wherever a copy of it is."""
        now = time.time()
        with self._lock:
            self._ended = {name: end for name, end in self._ended.items() if end > now}
            self._ended[visitor.id] = visitor.expires

    def csrf(self, visitor: Visitor) -> str:
        """The word that only a page of ours knows."""
        return self._mark("form", visitor.id)

    def is_csrf(self, visitor: Visitor, word: str) -> bool:
        """Whether a request brings that word."""
        return hmac.compare_digest(word.encode(), self.csrf(visitor).encode())

    def is_token(self, token: str) -> bool:
        """Whether this is the token, in a time that does not depend on how much of it is right."""
        mine, theirs = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (self._token, token))
        return bool(self._token) and hmac.compare_digest(mine, theirs)

    def may_try(self) -> bool:
        """Whether there were not too many wrong tokens of late."""
        with self._lock:
            while self._failures and self._failures[0] < time.monotonic() - FAILURE_SECONDS:
                self._failures.popleft()
            return len(self._failures) < MOST_FAILURES

    def failed(self) -> None:
        """Count a wrong token."""
        with self._lock:
            self._failures.append(time.monotonic())

    def _mark(self, purpose: str, said: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{said}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def secret_of(folder: Path) -> bytes:
    """The secret in a folder, made when it is first asked for and readable by its owner only."""
    path = folder / "secret"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        known = path.read_bytes()
        if len(known) >= 32:
            return known
        path.unlink()
        return secret_of(folder)
    with os.fdopen(descriptor, "wb") as file:
        made = secrets.token_bytes(32)
        file.write(made)
    return made
