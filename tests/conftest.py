"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background has Ctrl-C ignored, and every child of theirs would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
