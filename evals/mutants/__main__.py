"""`python -m evals.mutants [ID...]`: judges edits of small programs and writes out/mutants.json as it goes.

It goes on where it stopped: edits that are judged already are left out, unless named.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from evals.mutants import edits
from evals.mutants.judge import Judged, judge

OUT = Path(__file__).resolve().parents[2] / "out"


def main() -> int:
    """Judge edits, print what was wrong, and return 1 when anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="edits such as gpt/untied-weights; all by default")
    parser.add_argument("--out", type=Path, default=OUT / "mutants.json")
    parser.add_argument("--work", type=Path, default=OUT / "mutants")
    parser.add_argument("--program", help="only edits of this program")
    arguments = parser.parse_args()
    judged = _read(arguments.out)
    for edit in edits.read():
        wanted = edit.id in arguments.ids if arguments.ids else edit.id not in judged
        if not wanted or (arguments.program and edit.program != arguments.program):
            continue
        found = judge(edit, arguments.work)
        judged[f"{'harmless ' if edit.harmless else ''}{edit.id}"] = found
        print(_line(found), flush=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps([one.model_dump() for one in judged.values()], indent=1))
    return _summary(list(judged.values()))


def _read(path: Path) -> dict[str, Judged]:
    if not path.is_file():
        return {}
    found = [Judged.model_validate(item) for item in json.loads(path.read_text())]
    return {one.id: one for one in found}


def _line(one: Judged) -> str:
    kind = "harmless" if one.harmless else "fault"
    where = "" if one.harmless else f" located {one.located}"
    return f"{'right' if one.right else 'WRONG'} {kind} {one.id}: {one.failed}{where} | {one.said[:200]}"


def _summary(judged: list[Judged]) -> int:
    faults = [one for one in judged if not one.harmless]
    harmless = [one for one in judged if one.harmless]
    print(f"faults   {sum(one.caught for one in faults)} of {len(faults)} caught")
    print(f"stage    {sum(one.right_stage for one in faults)} of {len(faults)} at an expected stage")
    print(f"located  {sum(one.located for one in faults)} of {len(faults)} in the edited file")
    print(f"harmless {sum(one.caught for one in harmless)} of {len(harmless)} flagged")
    return int(any(not one.right for one in judged))


if __name__ == "__main__":
    sys.exit(main())
