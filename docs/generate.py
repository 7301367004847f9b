"""Writes the pages made from the code: `python docs/generate.py` writes rules.md, cli.md and the schema of scans.

tests/test_docs.py makes them again and fails where a page and the code differ.
"""

from __future__ import annotations

import inspect
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from typer.main import get_command

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from agents.cli import app  # noqa: E402
from tools import trace  # noqa: E402
from tools.coverage import Answer, Row, answers, rows  # noqa: E402
from tools.formats import scan_schema  # noqa: E402
from tools.knowledge import entries  # noqa: E402
from tools.rules import all_rules  # noqa: E402
from tools.rules.base import Invalid, Rule, Valid  # noqa: E402

MADE = "<!-- Made by docs/generate.py from the code; change it there and run `make docs`. -->"
SUFFIX = {".py": "python", ".ipynb": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".sh": "bash"}


def rules_page() -> str:
    """The table of all rules, and for each what it says, why, and its first case."""
    lines = [
        "# Rules", "", MADE, "",
        "Grades: a `safe` fix is applied by default; an `unsafe` one only with `--unsafe-fixes`; `advice` is "
        "reported and left to a person. A finding may differ from its rule's grade where it is less certain.", "",
        "| id | name | grade | what it says |", "|---|---|---|---|",
    ]  # fmt: skip
    lines += [f"| [{r.ID}](#{r.ID.lower()}) | {r.NAME} | {r.GRADE.value} | {_cell(r.MESSAGE)} |" for r in all_rules()]
    for rule in all_rules():
        lines += ["", *_rule(rule)]
    return "\n".join(lines) + "\n"


def _rule(rule: Rule) -> list[str]:
    lines = [f"## {rule.ID}", "", f"**{rule.NAME}** ({rule.GRADE.value})", "", inspect.getdoc(rule) or ""]
    for case in rule.INVALID[:1]:
        lines += ["", *_case(case)]
    for case in rule.VALID[:1]:
        text = case.text if isinstance(case, Valid) else case
        path = case.path if isinstance(case, Valid) else "train.py"
        lines += ["", "Left alone:", "", *_fence(text, path)]
    return lines


def _case(case: Invalid) -> list[str]:
    lines = ["Found:", "", *_fence(case.text, case.path)]
    if case.fixed is None:
        return lines
    return [*lines, "", "Becomes" + (" (unsafe fix):" if case.unsafe else ":"), "", *_fence(case.fixed, case.path)]


def _fence(text: str, path: str) -> list[str]:
    return [f"```{SUFFIX.get(Path(path).suffix, 'text')}", text.rstrip("\n"), "```"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def cli_page() -> str:
    """Every command with its arguments and options."""
    lines = ["# Command line", "", MADE]
    for path, command in _commands("torchtpu-agent", get_command(app)):
        lines += ["", f"## {path}", "", inspect.cleandoc(command.help or "").replace("\b\n", "").strip()]
        rows = [_parameter(p) for p in command.params if not getattr(p, "hidden", False)]
        if rows:
            lines += ["", "| argument or option | what it does |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _commands(path: str, command: Any) -> list[tuple[str, Any]]:
    found = [(path, command)]
    for name, child in sorted(getattr(command, "commands", {}).items()):
        found += _commands(f"{path} {name}", child)
    return found


def _parameter(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name}`"
    default = parameter.default
    one_of = f" One of: {', '.join(c.value for c in type(default))}." if isinstance(default, Enum) else ""
    return f"| {names} | {_cell(parameter.help or '')}{one_of} |"


_FAMILIES = {
    "A": "choice of the device", "B": "calls of torch.cuda", "C": "mixed precision", "D": "several processes",
    "E": "checkpoints", "F": "libraries with CUDA kernels", "G": "data loading", "H": "random numbers",
    "I": "torch_xla", "J": "shapes and hidden waits", "K": "wide types", "L": "operators",
    "M": "parameters and views", "N": "memory", "O": "numbers", "P": "DataParallel", "Q": "torch.compile",
    "R": "torch_tpu itself",
}  # fmt: skip


def coverage_page() -> str:
    """What goes wrong in the field, and what answers it: rules, knowledge entries, or a reason why nothing does."""
    found = answers(HERE.parent / "tests")
    count = {
        "by a rule that has fixes": sum(bool(answer.fixes) for answer in found),
        "by a rule that reports": sum(bool(answer.advises and not answer.fixes) for answer in found),
        "by naming the cause when a run fails": sum(
            bool(answer.entries and not answer.fixes and not answer.advises) for answer in found
        ),
        "no goal": sum(bool(answer.non_goal) for answer in found),
    }
    lines = [
        "# Coverage", "", MADE, "",
        f"{len(found)} failures told in public, and what answers each: "
        + ", ".join(f"{number} {what}" for what, number in count.items()) + ".",
        "", "A rule in **bold** has fixes, safe or unsafe, for the forms its page shows and reports the others "
        "([Rules](rules.md)); any other rule reports. An entry "
        f"in *italics* is one of {len(entries())} in `prompts/knowledge/` and names the cause when a run fails. Rows "
        "with a test of their own have a broken program, what becomes of it and, where a run can tell, a run of both.",
        "",
    ]  # fmt: skip
    for letter, name in _FAMILIES.items():
        lines += [f"## {letter}: {name}", "", "| row | what goes wrong | answered by | test |", "|---|---|---|---|"]
        lines += [_row(rows()[a.row], a) for a in found if a.row[0] == letter]
        lines.append("")
    return "\n".join(lines)


def _row(row: Row, answer: Answer) -> str:
    links = " ".join(f"[{n}]({link})" for n, link in enumerate(row.links(), 1))
    parts = [f"**[{rule}](rules.md#{rule.lower()})**" for rule in answer.fixes]
    parts += [f"[{rule}](rules.md#{rule.lower()})" for rule in answer.advises]
    parts += [f"*{entry}*" for entry in answer.entries]
    answered = ", ".join(parts) or f"Non-goal: {answer.non_goal}"
    tests = next(
        (f"`{test}`" for test in answer.tests if test.startswith("test_rows_")), "cases of the rules and entries"
    )
    return f"| {answer.row} | {_cell(row.symptom)} {links} | {answered} | {tests if answer.tests else ''} |"


def pages() -> dict[str, str]:
    """The text of every made page, by file name."""
    return {
        "coverage.md": coverage_page(),
        "rules.md": rules_page(),
        "cli.md": cli_page(),
        "schema/scan-v1.json": scan_schema(),
        "schema/trace-v1.json": trace.schema(),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}: {len(text.splitlines())} lines")
