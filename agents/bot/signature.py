"""Whether a delivery comes from GitHub: HMAC-SHA256 over its raw body, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac

_SCHEME = "sha256="


def sign(secret: str, body: bytes) -> str:
    """The value of X-Hub-Signature-256 for a body."""
    return _SCHEME + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, signature: str | None) -> bool:
    """Whether a body carries the right signature; one that is missing or of another kind is wrong."""
    if not secret or not signature or not signature.startswith(_SCHEME):
        return False
    # As bytes: a header may hold letters that compare_digest refuses in a text.
    return hmac.compare_digest(sign(secret, body).encode(), signature.encode("utf-8", "surrogateescape"))
