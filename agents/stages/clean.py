"""Stage `clean`: no finding of grade safe or unsafe is left on a path that the TPU takes."""

from __future__ import annotations

from agents.context import Context
from agents.reach import Reach
from agents.runs import write_whole
from agents.stages.common import failed, passed
from agents.state import State, Verdict
from tools.findings import Finding, Grade
from tools.scan import scan


def clean(state: State, context: Context) -> Verdict:
    """Scan the migrated tree again and look at what the entries reach."""
    root = context.root(state)
    result = scan(root, select=state.settings.select, ignore=state.settings.ignore)
    left = context.folder.path / "findings-left.json"
    write_whole(left, result.model_dump_json(indent=1))
    serious = [finding for finding in result.findings if finding.grade is not Grade.ADVICE]
    on_path = [finding for finding in serious if finding.path in reached(state, context)] if serious else []
    evidence = [f"torchtpu-agent scan {root}", str(left)]
    elsewhere = len(serious) - len(on_path)
    aside = f"; {elsewhere} in files that no entry reaches" if elsewhere else ""
    if on_path:
        return failed("clean", f"{len(on_path)} left: {_list(on_path)}{aside}", evidence)
    return passed("clean", f"no safe or unsafe finding is left where the entries lead{aside}", evidence)


def reached(state: State, context: Context) -> set[str]:
    """Files that the entries reach; without an entry, every file counts."""
    root = context.root(state)
    scripts = [name for entry in state.entries for name in entry.scripts]
    if not scripts:
        return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    reach = Reach(root)
    files = reach.files(name for name in scripts if name.endswith(".py"))
    words = {word for entry in state.entries for word in entry.command.split()}
    return files | set(scripts) | reach.settings(files, words)


def _list(findings: list[Finding], most: int = 3) -> str:
    shown = "; ".join(f"{f.path}:{f.line} {f.rule} {f.message}" for f in findings[:most])
    return shown if len(findings) <= most else f"{shown}; ..."
