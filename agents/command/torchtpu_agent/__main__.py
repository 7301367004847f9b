"""`python -m torchtpu_agent` is the same as `torchtpu-agent`."""

import sys

from torchtpu_agent import main

if __name__ == "__main__":
    # `-m` puts the current folder first, which is often the repository being migrated: its
    # `tools` or `rich` must not be imported in place of ours.
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
