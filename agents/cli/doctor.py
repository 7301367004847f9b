"""`torchtpu-agent doctor`: what is installed, which device would be used, and how to repair what does not fit."""

from __future__ import annotations

from pathlib import Path

from agents.cli import options
from agents.cli.common import console, guarded, interpreter
from agents.cli.output import print_json
from tools.errors import Exit


@guarded
def doctor(python: options.Python = None, json_output: options.Json = False) -> Exit | None:
    """Say what is installed, which device would be used and why, and how to repair what does not fit.

    Exit codes: 0 a program can run on a device; 3 it cannot, and the lines marked `fail` say why.
    """
    from torchtpu.doctor import examine

    found = interpreter(python)
    checks = examine(Path(found) if found else None)
    failed = any(check.status == "fail" for check in checks)
    if json_output:
        print_json([{"name": c.name, "status": c.status, "detail": c.detail, "repair": c.repair} for c in checks])
    else:
        out = console()
        for check in checks:
            line = f"{check.status:<5} {check.name:<18} {check.detail}"
            out.print(line, highlight=False, markup=False, soft_wrap=True)
            if check.repair:
                out.print(f"{'':<24} {check.repair}", highlight=False, markup=False, soft_wrap=True)
    return Exit.ENVIRONMENT if failed else None
