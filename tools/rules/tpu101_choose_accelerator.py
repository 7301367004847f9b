"""TPU101: a device chosen by asking for CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.device_tests import needs_cuda
from tools.code.edits import Edit, Fix
from tools.code.guards import availability_calls, is_cuda_test, is_no_cuda_test, on_cuda_path
from tools.code.literals import cuda_moves, index_text, is_cuda_literal, is_generator, is_put_together
from tools.code.module import Module, fact, string
from tools.code.older import is_for_older
from tools.code.rewrite import (
    AVAILABLE,
    CURRENT,
    ask_accelerator,
    device_type,
    import_edits,
    parenthesised,
    resolved_variables,
    spell,
)
from tools.findings import Grade
from tools.project import Trait
from tools.rules.base import Invalid, Match, PythonRule


class ChooseAccelerator(PythonRule):
    """``"cuda" if torch.cuda.is_available() else "cpu"`` asks one vendor and silently takes the CPU elsewhere.

    The same choice through ``torch.accelerator`` gives CUDA on a CUDA machine, the CPU where there is no accelerator, and
    the accelerator on any other. An index in the literal is kept; one that a rank gives stays on CUDA, because elsewhere one
    process has one device. Further conditions of the test stay. Choices whose test
    is a variable are left to TPU102, which changes the variable.

    Not covered: tests hidden in functions of the user's own.
    """

    ID = "TPU101"
    NAME = "choose-accelerator"
    FAMILY = "A"
    MESSAGE = "the device is chosen by asking for CUDA alone; on any other accelerator this silently takes the CPU"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A9", "A15")
    VALID = (
        "import torch\ndevice = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n",
        "import torch\nname = torch.cuda.get_device_name() if torch.cuda.is_available() else 'none'\n",
        "x = 'cuda' if flag else 'cpu'\n",
        "import torch\nd = f'cuda:{r}' if torch.cuda.is_available() else (torch.accelerator.current_accelerator().type "
        "if torch.accelerator.is_available() else 'cpu')\n",
        "import torch\nD = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n"
        "d = torch.device('cuda', r) if torch.cuda.is_available() else torch.device(D)\n",
        "import torch\ng = torch.Generator('cuda' if torch.cuda.is_available() else 'cpu')\n",
        "import torch\nd = f'cuda:{r}' if torch.cuda.is_available() else DEVICE_TYPE\n",
    )
    INVALID = (
        Invalid(
            "import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n",
            "import torch\n"
            "device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n",
        ),
        Invalid(
            'import torch as t\ndevice = t.device("cuda:0" if t.cuda.is_available() else "cpu")  # pick\n',
            "import torch as t\n"
            'device = t.device(f"{t.accelerator.current_accelerator().type}:0" if t.accelerator.is_available() else "cpu")'
            "  # pick\n",
        ),
        Invalid(
            "import torch\nd = torch.device('cuda') if torch.cuda.is_available() and not args.cpu else torch.device('cpu')\n",
            "import torch\nd = torch.device(torch.accelerator.current_accelerator().type) "
            "if torch.accelerator.is_available() and not args.cpu else torch.device('cpu')\n",
        ),
        Invalid(
            "import torch\n\n\ndef pick(rank):\n    return f'cuda:{rank}' if torch.cuda.is_available() else 'cpu'\n",
            "import torch\n\nDEVICE_TYPE = torch.accelerator.current_accelerator().type "
            'if torch.accelerator.is_available() else "cpu"\n\n\n'
            "def pick(rank):\n    return f'cuda:{rank}' if torch.cuda.is_available() else DEVICE_TYPE\n",
        ),
        Invalid(
            "import torch\ndevice = 'cpu' if not torch.cuda.is_available() else 'cuda'\n",
            "import torch\n"
            "device = 'cpu' if not torch.accelerator.is_available() else torch.accelerator.current_accelerator().type\n",
        ),
        Invalid(
            "import torch\nrank = 0\n\n\ndef pick():\n    return 'cuda:{}'.format(rank) if torch.cuda.is_available() else 'cpu'\n",
            "import torch\n\nDEVICE_TYPE = torch.accelerator.current_accelerator().type "
            'if torch.accelerator.is_available() else "cpu"\nrank = 0\n\n\n'
            "def pick():\n    return 'cuda:{}'.format(rank) if torch.cuda.is_available() else DEVICE_TYPE\n",
        ),
        Invalid(
            "import torch\ndef to_var(x):\n    return x.cuda() if torch.cuda.is_available() else x\n",
            "import torch\ndef to_var(x):\n    return x.cuda() if torch.accelerator.is_available() else x\n",
        ),
        Invalid(
            "import torch\nD = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n"
            "d = torch.device(D if torch.cuda.is_available() else 'cpu')\n"
            "e = torch.device(D if torch.cuda.is_available() and gpu else 'cpu')\n",
            "import torch\nD = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n"
            "d = torch.device(D)\n"
            "e = torch.device(D if torch.accelerator.is_available() and gpu else 'cpu')\n",
            count=2,
        ),
        Invalid(
            "from torch.cuda import is_available\nd = 'cuda' if is_available() else 'cpu'\n",
            "import torch\n"
            "d = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields conditional expressions that choose between CUDA and something else by ``torch.cuda.is_available``."""
        yield from choices(module)


@fact
def choices(module: Module) -> list[Match]:
    """What the rule finds in a file."""
    found: list[Match] = []
    for choice in module.nodes(ast.IfExp):
        calls = availability_calls(module, choice.test)
        if not calls or on_cuda_path(module, choice):
            continue
        if is_cuda_test(module, choice.test, flags=False):
            chosen, otherwise = choice.body, choice.orelse
        elif isinstance(choice.test, ast.UnaryOp) and is_no_cuda_test(module, choice.test):
            chosen, otherwise = choice.orelse, choice.body
        else:
            continue
        if any(is_generator(module, a) for a in (*module.ancestors(choice), *ast.walk(chosen))):
            continue
        if isinstance(chosen, ast.Name) and chosen.id in resolved_variables(module) and string(otherwise) == "cpu":
            found.append(_resolved_already(module, choice, calls, chosen))
        elif not _is_resolved(module, otherwise):
            found += _judge(module, choice, chosen, otherwise)
    return found


def _resolved_already(module: Module, choice: ast.IfExp, calls: list[ast.Call], chosen: ast.Name) -> Match:
    """A choice between the resolved device and the CPU: the device alone says both, unless more is asked for."""
    if choice.test in calls and chosen is choice.body:
        return Match(*module.span(choice), fix=Fix((module.replace(choice, chosen.id),)))
    edits = dict.fromkeys(edit for call in calls for edit in ask_accelerator(module, call))
    return Match(*module.span(choice), fix=Fix(tuple(edits)))


def _judge(module: Module, choice: ast.IfExp, chosen: ast.expr, otherwise: ast.expr) -> Iterator[Match]:
    """What to do about a choice, by what it takes on CUDA and elsewhere."""
    start, end = module.span(choice)
    calls = availability_calls(module, choice.test)
    literals = [n for n in ast.walk(chosen) if isinstance(n, ast.expr) and is_cuda_literal(n)]
    literals = [n for n in literals if not _compared(module, n)]
    if any(isinstance(literal, ast.JoinedStr) or is_put_together(literal) for literal in literals):
        if edits := _cpu_edits(module, otherwise):
            yield Match(start, end, fix=Fix(edits))
    elif literals:
        yield Match(start, end, fix=Fix(_edits(module, choice, calls, literals)))
    elif any(move in ast.walk(chosen) for move in cuda_moves(module)) and not needs_cuda(module, [chosen]):
        grade = Grade.UNSAFE if module.project.has(Trait.OWN_CUDA) else None
        edits = tuple(dict.fromkeys(edit for call in calls for edit in ask_accelerator(module, call)))
        yield Match(start, end, fix=Fix(edits), grade=grade)


def _edits(module: Module, choice: ast.IfExp, calls: list[ast.Call], literals: list[ast.expr]) -> tuple[Edit, ...]:
    if not is_for_older(module):
        tests = [module.replace(call.func, spell(module, AVAILABLE)) for call in calls]
        return (*tests, *(type_edit(module, literal) for literal in literals), *import_edits(module))
    if (
        choice.test in calls
        and choice.body in literals
        and string(choice.body) == "cuda"
        and string(choice.orelse) == "cpu"
    ):
        name, edits = device_type(module, choice)
        return (module.replace(choice, parenthesised(module, choice, name)), *edits)
    return tuple(
        dict.fromkeys(
            edit
            for edits in (*(ask_accelerator(module, c) for c in calls), *(_type_edits(module, lit) for lit in literals))
            for edit in edits
        )
    )


def _type_edits(module: Module, literal: ast.expr) -> list[Edit]:
    name, edits = device_type(module, literal)
    index, quote = index_text(module, literal), module.text(literal).lstrip("fFrRuU")[0]
    written = parenthesised(module, literal, name) if index is None else f"f{quote}{{{name}}}:{index}{quote}"
    return [module.replace(literal, written), *edits]


def _compared(module: Module, literal: ast.expr) -> bool:
    """Whether a literal is what something is compared with (``in ("cpu", "cuda")``), and no device that is chosen."""
    return any(isinstance(a, ast.Compare) for a in module.ancestors(literal) if isinstance(a, ast.expr))


def _is_resolved(module: Module, otherwise: ast.expr) -> bool:
    """Whether the other branch names the accelerator already, so that the choice keeps CUDA's index for CUDA."""
    known = resolved_variables(module)
    named = any(isinstance(n, ast.Name) and n.id in known for n in ast.walk(otherwise))
    return named or "accelerator." in module.text(otherwise)


def _cpu_edits(module: Module, otherwise: ast.expr) -> tuple[Edit, ...]:
    """Resolves the ``"cpu"`` of ``f"cuda:{rank}" if ... else "cpu"``: a rank's index is for CUDA alone."""
    for literal in ast.walk(otherwise):
        if isinstance(literal, ast.expr) and string(literal) == "cpu":
            name, edits = device_type(module, literal)
            return (module.replace(literal, name), *edits)
    return ()


def type_edit(module: Module, literal: ast.expr) -> Edit:
    """Replaces a CUDA literal by the accelerator's type, which is known to exist there; an index is kept."""
    current = f"{spell(module, CURRENT)}().type"
    index = index_text(module, literal)
    if index is None:
        return module.replace(literal, current)
    quote = module.text(literal).lstrip("fFrRuU")[0]
    return module.replace(literal, f"f{quote}{{{current}}}:{index}{quote}")
