"""`python -m agents.cli` is the command line of a development tree."""

from agents.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
