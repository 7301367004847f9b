"""The installed command: puts the rooms on the path of its own process, then runs the command line.

The rooms `agents`, `tools`, `prompts` and `evals` have names that other distributions use as well.
In a wheel they lie inside this package and nobody else can import them under those names; in the
development tree they are the folders three levels above.
"""

import sys
from pathlib import Path

__all__ = ["main", "rooms"]

INTERRUPTED = 4  # as in tools.errors, which is not imported yet when it is needed


def rooms() -> Path:
    """Return the folder that holds `agents`, `tools`, `prompts` and `evals`."""
    here = Path(__file__).resolve().parent
    return here if (here / "agents").is_dir() else here.parents[2]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # First on the path, so that a package of the same name in site-packages or in the current
    # folder does not win. Children made by multiprocessing receive the path as it is here.
    sys.path.insert(0, str(rooms()))
    from agents import interrupts

    interrupts.listen()
    try:
        from agents.cli import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("error    Interrupted.\n")
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(command_line())
