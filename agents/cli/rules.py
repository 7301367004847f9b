"""`torchtpu-agent rules`: what the scanner looks for."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded
from agents.cli.output import echo, print_json
from tools.errors import Exit

app = typer.Typer(help="List the rules, or show one with its cases.", no_args_is_help=True)


@app.command("list")
@guarded
def list_rules(json_output: options.Json = False) -> Exit | None:
    """List all rules: id, grade, name and message.

    Grades: safe fixes are applied by migrate; unsafe ones only with --unsafe-fixes; advice is reported.
    """
    from tools.rules import all_rules

    known = all_rules()
    if json_output:
        print_json(
            [
                {"id": r.ID, "name": r.NAME, "family": r.FAMILY, "grade": r.GRADE.value, "message": r.MESSAGE}
                for r in known
            ]
        )
        return None
    for rule in known:
        echo(f"{rule.ID}  {rule.GRADE.value:<6}  {rule.NAME:<34}  {rule.MESSAGE}")
    return None


@app.command("show")
@guarded
def show_rule(
    rule_id: Annotated[str, typer.Argument(help="A rule's id, such as TPU101.", metavar="RULE")],
    json_output: options.Json = False,
) -> Exit | None:
    """Show what one rule finds, why, what it does not cover, and an example."""
    from tools.rules import UnknownRule, all_rules

    rule = next((r for r in all_rules() if rule_id.upper() in (r.ID, r.NAME.upper())), None)
    if rule is None:
        raise UnknownRule(rule_id)
    text = inspect.cleandoc(type(rule).__doc__ or "")
    cases = [{"before": case.text, "after": case.fixed} for case in rule.INVALID]
    if json_output:
        print_json(
            {"id": rule.ID, "name": rule.NAME, "family": rule.FAMILY, "grade": rule.GRADE.value,
             "message": rule.MESSAGE, "description": text, "covers": list(rule.COVERS), "cases": cases}
        )  # fmt: skip
        return None
    out = console()
    out.print(f"{rule.ID} {rule.NAME} ({rule.GRADE.value})\n\n{rule.MESSAGE}\n\n{text}", highlight=False, markup=False)
    for case in rule.INVALID[:1]:
        out.print(f"\nBefore:\n\n{case.text}", highlight=False, markup=False)
        if case.fixed is not None:
            out.print(f"After:\n\n{case.fixed}", highlight=False, markup=False)
    return None
