"""TPU208: CUDA streams."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_api import handled_by
from tools.code.cuda_calls import chain, editable, elsewhere, every_use, guarded, statement_of, uses
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_MAKERS = frozenset({"Stream", "current_stream", "default_stream", "ExternalStream", "get_stream_from_external"})
_HARMLESS_WITH_NONE = frozenset({"stream", "set_stream", "StreamContext"})
_METHODS = frozenset({"wait_stream", "wait_event", "record_event", "synchronize"})
_NOTE = "the value is computed from a CUDA stream; give this code a branch of its own for other devices"


class GuardStream(PythonRule):
    """``torch.cuda.Stream()`` and ``torch.cuda.current_stream()`` fail without CUDA.

    Other devices run their work in order, so streams there are left out: the stream is None, for which
    ``torch.cuda.stream(None)`` does nothing, and waiting for a stream is for CUDA only; an event is recorded on any device. Code on CUDA keeps its overlap.

    Not covered: streams handed to other functions as arguments, and values read from a stream (``.cuda_stream``).
    """

    ID = "TPU208"
    NAME = "guard-stream"
    FAMILY = "B"
    MESSAGE = "CUDA streams fail without CUDA; other devices run their work in order"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", ".synchronize(", ".wait_stream(", ".wait_event(", ".record_event(", ".record_stream(")
    REQUIRES = ("cuda",)
    COVERS = ("B1", "B2", "B3")
    VALID = (
        "import torch\ns = torch.cuda.Stream() if torch.cuda.is_available() else None\nwith torch.cuda.stream(s):\n    f()\n",
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.current_stream().wait_stream(s)\n",
        "import torch\nx: torch.cuda.Stream\n",
        "import torch\ns = cast(torch.cuda.Stream, t)\ns.synchronize()\n",
    )
    INVALID = (
        Invalid(
            "import torch\ns = torch.cuda.Stream()\ns.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(s):\n    f()\ntorch.cuda.current_stream().wait_stream(s)\n",
            "import torch\ns = torch.cuda.Stream() if torch.cuda.is_available() else None\n"
            "if torch.cuda.is_available():\n    s.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(s):\n    f()\n"
            "if torch.cuda.is_available():\n    torch.cuda.current_stream().wait_stream(s)\n",
            count=3,
        ),
        Invalid(
            "import torch\nwith torch.cuda.stream(torch.cuda.Stream()):\n    f()\n",
            "import torch\nwith torch.cuda.stream(torch.cuda.Stream() if torch.cuda.is_available() else None):\n    f()\n",
        ),
        Invalid(
            "import torch\nself.copy = torch.cuda.Stream(priority=-1)\nself.copy.synchronize()\n",
            "import torch\nself.copy = torch.cuda.Stream(priority=-1) if torch.cuda.is_available() else None\n"
            "if torch.cuda.is_available():\n    self.copy.synchronize()\n",
            count=2,
        ),
        Invalid(
            "import torch\nstart.record(torch.cuda.current_stream())\n",
            "import torch\nstart.record()\n",
        ),
        Invalid(
            "import torch\nstart.record(torch.cuda.current_stream(device))\n",
            "import torch\nstart.record(torch.cuda.current_stream(device) if torch.cuda.is_available() else None)\n",
        ),
        Invalid(
            "import torch\ndef free(ps):\n    current = torch.cuda.current_stream()\n    for p in ps:\n        p.record_stream(current)\n",
            "import torch\ndef free(ps):\n    current = torch.cuda.current_stream() if torch.cuda.is_available() else None\n"
            "    for p in ps:\n        if torch.cuda.is_available():\n            p.record_stream(current)\n",
            count=2,
        ),
        Invalid("import torch\nhandle = torch.cuda.current_stream().cuda_stream\n", None),
        Invalid(
            "import torch\nx.record_stream(torch.cuda.current_stream())\n",
            "import torch\nif torch.cuda.is_available():\n    x.record_stream(torch.cuda.current_stream())\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields makers of streams, and statements that wait for one, off the CUDA-only path."""
        statements: dict[ast.stmt, ast.expr] = {}
        rest: list[ast.Call] = []
        for node, name in uses(module, handled_by(self.ID) - _HARMLESS_WITH_NONE):
            call = module.parent(node)
            if name not in _MAKERS or not isinstance(call, ast.Call) or call.func is not node:
                continue
            if _is_wait(module, call):
                continue
            if name == "current_stream" and _records(module, call):
                yield Match(*module.span(call), fix=Fix((module.replace(call, ""),)))
                continue
            holder = _whole_statement(module, call)
            if holder is None:
                rest.append(call)
            else:
                statements.setdefault(holder, holder.value)
        for waiting, value in _waits(module):
            statements.setdefault(waiting, value)
        fixes = guarded(module, statements)
        for statement, value in statements.items():
            yield Match(*module.span(value), fix=fixes[statement])
        for call in rest:
            fix = _none_elsewhere(module, call)
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=None if fix else _NOTE)


def _is_wait(module: Module, call: ast.Call) -> bool:
    """Whether it is ``torch.cuda.current_stream().synchronize()``, which waits for the device (TPU206)."""
    attribute = module.parent(call)
    return isinstance(attribute, ast.Attribute) and attribute.attr == "synchronize"


def _records(module: Module, call: ast.Call) -> bool:
    """Whether it is ``event.record(torch.cuda.current_stream())``, which means the same without the argument."""
    outer = module.parent(call)
    if not isinstance(outer, ast.Call) or outer.args != [call] or outer.keywords or call.args or call.keywords:
        return False
    return isinstance(outer.func, ast.Attribute) and outer.func.attr == "record"


def _whole_statement(module: Module, call: ast.Call) -> ast.Expr | None:
    """The expression statement that is about the stream and nothing else."""
    whole = chain(module, call)
    if (statement := statement_of(module, whole)) is not None:
        return statement
    outer = module.parent(whole)
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
        if outer.func.attr in (*_METHODS, "record_stream"):
            return statement_of(module, outer)
    return None


def _none_elsewhere(module: Module, call: ast.Call) -> Fix | None:
    return elsewhere(module, call, "None") if chain(module, call) is call and editable(module, call) else None


def _waits(module: Module) -> Iterator[tuple[ast.Expr, ast.expr]]:
    """Statements such as ``s.synchronize()`` on variables that hold a CUDA stream and may be None elsewhere."""
    streams = _variables(module)
    for statement in module.nodes(ast.Expr) if streams else ():
        call = statement.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            records = call.func.attr == "record_stream" and len(call.args) == 1 and dotted(call.args[0]) in streams
            if (
                (records or (call.func.attr in _METHODS and dotted(call.func.value) in streams))
                and not on_cuda_path(module, call)
                and not _tests(module, call, streams)
            ):
                yield statement, call


def _call_of(module: Module, node: ast.expr) -> ast.Call | None:
    call = module.parent(node)
    return call if isinstance(call, ast.Call) and call.func is node else None


def _variables(module: Module) -> frozenset[str]:
    makers = {id(c) for node, name in every_use(module) if name in _MAKERS and (c := _call_of(module, node))}
    found = set()
    for assignment in module.nodes(ast.Assign):
        value = assignment.value.body if isinstance(assignment.value, ast.IfExp) else assignment.value
        if id(value) in makers:
            found |= {name for target in assignment.targets if (name := dotted(target))}
    return frozenset(found)


def _tests(module: Module, node: ast.AST, streams: frozenset[str]) -> bool:
    """Whether an ``if`` around the node asks for the stream itself (``if s is not None``)."""
    tests = (a.test for a in module.ancestors(node) if isinstance(a, ast.If))
    return any(dotted(part) in streams for test in tests for part in ast.walk(test))
