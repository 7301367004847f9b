"""What a failed request to GitHub means: wait and try again, look whether it took effect, or give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from githubkit.exception import GitHubException, RateLimitExceeded, RequestFailed

_LONGEST = 60.0
_GATEWAY = frozenset({500, 502, 503, 504})


class Ambiguous(Exception):
    """A request that may have taken effect; look before it is sent again."""


class Refused(Exception):
    """GitHub's answer to a request that will not get better by trying again.

    Args:
        status: Of the answer.
        message: GitHub's own words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"GitHub answered {status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Verdict:
    """What to do about a failure.

    Attributes:
        act: `again` after `seconds`; `look` whether it took effect; `give up`.
    """

    act: Literal["again", "look", "give up"]
    seconds: float = 0.0


def judge(error: GitHubException, repeatable: bool, attempt: int) -> Verdict:
    """Judge a failure.

    Args:
        error: What githubkit raised.
        repeatable: Whether sending the request twice is the same as sending it once.
        attempt: How often it failed, from 1.
    """
    wait = backoff(attempt)
    if isinstance(error, RateLimitExceeded):  # turned away before it took effect
        return Verdict("again", max(wait, error.retry_after.total_seconds()))
    if isinstance(error, RequestFailed):
        status = error.response.status_code
        if status == 429:
            return Verdict("again", wait)
        if status not in _GATEWAY:
            return Verdict("give up")
    return Verdict("again" if repeatable else "look", wait)


def backoff(attempt: int) -> float:
    """Seconds to wait after so many failures: a half, doubled each time, a minute at most."""
    return float(min(_LONGEST, 0.5 * 2 ** min(attempt - 1, 10)))


def as_refused(error: GitHubException) -> Refused | None:
    """GitHub's refusal, if an error of githubkit is one."""
    if not isinstance(error, RequestFailed):
        return None
    try:
        message = str(error.response.json().get("message", ""))
    except (ValueError, AttributeError):
        message = ""
    return Refused(error.response.status_code, message[:500])
