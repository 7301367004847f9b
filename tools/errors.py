"""What a person can put right: typed errors with a remedy, and the exit codes of every command."""

from __future__ import annotations

import errno
import os
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of `torchtpu-agent`, the same for every command."""

    PASSED = 0
    FAILED = 1
    BAD_INPUT = 2
    ENVIRONMENT = 3
    INTERRUPTED = 4
    INTERNAL = 5


def lacks_room(error: OSError) -> bool:
    """Whether a disk or a quota is full; `shutil` gathers such errors into one that has only their text."""
    return any(error.errno == number or os.strerror(number) in str(error) for number in (errno.ENOSPC, errno.EDQUOT))


class UserError(Exception):
    """A mistake or a lack that a person can put right.

    Args:
        message: What is wrong, in one sentence.
        remedy: What to do about it; empty when the message says so itself.
        exit_code: How the command ends.
    """

    def __init__(self, message: str, remedy: str = "", exit_code: Exit = Exit.BAD_INPUT) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code
