"""Shell and batch-job scripts: what counts as one, and which of their text is command rather than comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.source import SourceFile

FILES = ("*.sh", "*.bash", "*.zsh", "*.slurm", "*.sbatch", "*.sub", "*.pbs", "*.lsf", "Makefile", "makefile", "*.mk")
INTERPRETERS = ("sh", "bash", "zsh")

_COMMENT = re.compile(r"(?:^|[ \t;])#(?!SBATCH|PBS|BSUB)")


def places(source: SourceFile, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Matches of a pattern outside comments; directives such as ``#SBATCH`` are no comments."""
    for match in pattern.finditer(source.text):
        line, column = source.position(match.start())
        if not _COMMENT.search(source.line(line)[: column - 1]):
            yield match
