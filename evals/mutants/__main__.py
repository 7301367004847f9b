"""`python -m evals.mutants [ID...]`: judges edits of small programs and writes out/mutants.json as it goes.

It goes on where it stopped: edits that are judged already are left out, unless named. `--publish` writes what has been
judged so far to evals/results, and judges nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from evals import results
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
    parser.add_argument("--publish", action="store_true", help="write evals/results/mutants.*, and judge nothing")
    arguments = parser.parse_args()
    judged = _read(arguments.out)
    if arguments.publish:
        return _publish(list(judged.values()))
    for edit in edits.read():
        wanted = edit.id in arguments.ids if arguments.ids else edit.id not in judged
        if not wanted or (arguments.program and edit.program != arguments.program):
            continue
        found = judge(edit, arguments.work)
        judged[edit.id] = found
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


def _publish(judged: list[Judged]) -> int:
    known = {edit.id: edit for edit in edits.read()}
    mine = sorted((one for one in judged if one.id in known), key=lambda one: (one.harmless, one.id))
    record = {
        "date": results.today(), "revisions": sorted({one.revision for one in mine}),
        "versions": results.versions(Path(sys.executable)),
        "edits": {kind: sum(edit.harmless == flag for edit in known.values()) for kind, flag in _KINDS.items()},
        "judged": [one.model_dump() for one in mine],
    }  # fmt: skip
    results.publish("mutants", [results.without_places(record)], results.without_places(_page(record, mine)))
    return _summary(mine)


_KINDS = {"faults": False, "harmless": True}


def _page(record: dict[str, Any], judged: list[Judged]) -> str:
    faults, harmless = ([one for one in judged if one.harmless == flag] for flag in (False, True))
    shares = [
        ("faults judged", len(faults), record["edits"]["faults"]),
        ("faults caught", sum(one.caught for one in faults), len(faults)),
        ("faults at an expected stage", sum(one.right_stage for one in faults), len(faults)),
        ("faults located in the edited file", sum(one.located for one in faults), len(faults)),
        ("harmless changes judged", len(harmless), record["edits"]["harmless"]),
        ("harmless changes flagged", sum(one.caught for one in harmless), len(harmless)),
    ]
    lines = [
        "# Faults and harmless changes put to the verifier",
        "",
        f"Published {record['date']} by `python -m evals.mutants --publish`. Two small programs (a transformer with"
        " AMP, a residual network) are migrated and changed in one place each. A fault is compared on the CPU with CUDA"
        " imitated, and on the simulated device where only that shows it. *Located*: the edited file is named by the"
        " verdict or one of its first three problems. Edits are judged one by one, at"
        f" {len(record['revisions'])} commits of a verifier that was being corrected meanwhile; the JSON has the"
        " checkout's commit for each, not one commit for all.",
        "",
        "| | count | of |\n|---|---:|---:|",
        *(f"| {what} | {count} | {whole} |" for what, count, whole in shares),
        "",
        "| change | expected | failed | located | judgement |\n|---|---|---|---|---|",
        *(
            f"| {one.id} | {', '.join(one.expected) or 'none'} | {', '.join(one.failed) or 'none'}"
            f" | {'' if one.harmless else 'yes' if one.located else 'no'} | {'right' if one.right else '**wrong**'} |"
            for one in judged
        ),
    ]
    return "\n".join(lines) + "\n"


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
