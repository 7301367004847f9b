"""TPU112: command-line choices of a device without the accelerator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.literals import device_names
from tools.code.module import Module
from tools.code.rewrite import device_type
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class OfferAccelerator(PythonRule):
    """``choices=["cpu", "cuda"]`` refuses the device of any other accelerator.

    The type of the accelerator in use joins the list; where that is CUDA or the CPU the choices are the same as before.

    Not covered: ``typing.Literal`` and enumerations.
    """

    ID = "TPU112"
    NAME = "offer-accelerator"
    FAMILY = "A"
    MESSAGE = "the choices for the device leave out every other accelerator"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A11", "A14")
    VALID = (
        "p.add_argument('--device', choices=sorted({'cpu', 'cuda', DEVICE_TYPE}))\n",
        "p.add_argument('--device', choices=['cpu', 'cuda', 'tpu'])\n",
        "p.add_argument('--backend', choices=['cuda', 'triton'])\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\np.add_argument('--device', choices=['cpu', 'cuda'], default='cpu')\n",
            f"import torch\n\n{_TOP}\n"
            "p.add_argument('--device', choices=sorted({'cpu', 'cuda', DEVICE_TYPE}), default='cpu')\n",
        ),
        Invalid(
            'import click\nimport torch\nkind = click.Choice(["cuda", "cpu"])\n',
            f'import click\nimport torch\n\n{_TOP}kind = click.Choice(sorted({{"cuda", "cpu", DEVICE_TYPE}}))\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields lists of device types given as choices."""
        for call in module.nodes(ast.Call):
            for value in _choices(call):
                names = device_names(value)
                if names is None or "cuda" not in names or "tpu" in names:
                    continue
                name, edits = device_type(module, value)
                inner = ", ".join(module.text(e) for e in value.elts)  # type: ignore[attr-defined]
                text = f"sorted({{{inner}, {name}}})"
                yield Match(*module.span(value), fix=Fix((module.replace(value, text), *edits)))


def _choices(call: ast.Call) -> Iterator[ast.expr]:
    function = call.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if last == "Choice" and call.args:
        yield call.args[0]
    if last in ("add_argument", "add_option", "field", "option"):
        yield from (k.value for k in call.keywords if k.arg == "choices")
