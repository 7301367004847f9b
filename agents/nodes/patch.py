"""Applies the plan to the private tree: one commit per rule, always from the base."""

from __future__ import annotations

import json

from langgraph.runtime import Runtime

from agents.context import Context
from agents.runs import write_whole
from agents.state import State
from tools import git
from tools.findings import Finding
from tools.patch import PatchStep, patch_steps
from tools.wording import amount


def patch(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Reset the tree to its base and apply the rules, so that a second time gives the same tree."""
    context = runtime.context
    tree = context.folder.tree
    git.start_branch(tree, state.branch, state.origin.base)
    commits: list[git.Commit] = []
    changes: list[dict[str, object]] = []
    steps = patch_steps(
        context.root(state),
        unsafe=state.request.unsafe_fixes,
        select=state.settings.select,
        ignore=state.settings.ignore,
    )
    for step in steps:
        context.progress.working("patch", f"{step.rule} {step.title}")
        commits.append(_commit(step, state, context))
        changes += [_change(finding, commits[-1].sha) for finding in step.findings]
    write_whole(context.folder.path / "changes.json", json.dumps(changes))
    context.progress.done("patch", _summary(state, commits))
    return {"commits": commits}


def _commit(step: PatchStep, state: State, context: Context) -> git.Commit:
    scope = f"{state.origin.scope}/" if state.origin.scope else ""
    files = sorted(f"{scope}{name}" for name in step.files)
    message = commit_message(step, scope)
    sha = git.commit_files(context.folder.tree, files, message, state.request.created)
    return git.Commit(sha=sha, rule=step.rule, title=step.title, files=files, findings=len(step.findings))


def _change(finding: Finding, sha: str) -> dict[str, object]:
    return {**finding.model_dump(mode="json"), "commit": sha}


def commit_message(step: PatchStep, scope: str = "") -> str:
    """Subject with the rule's id, then what was found at each place, then how to repeat it."""
    lines = [f"{step.rule}: {step.title}", ""]
    lines += [f"- {scope}{_place(finding)}: {finding.message}" for finding in step.findings]
    lines += ["", "Made by torchtpu-agent."]
    return "\n".join(lines) + "\n"


def _place(finding: Finding) -> str:
    cell = f" cell {finding.cell}" if finding.cell else ""
    return f"{finding.path}{cell}:{finding.line}"


def _summary(state: State, commits: list[git.Commit]) -> str:
    if not commits:
        return "nothing to change"
    made = amount(len(commits), "commit")
    branch = state.origin.kind == "repository" and not state.request.dry_run and not state.request.out
    return f"branch {state.branch}, {made}" if branch else f"{made} in a private copy"
