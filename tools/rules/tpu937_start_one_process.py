"""TPU937: processes started through torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, spread
from tools.code.cuda_calls import imported
from tools.code.edits import Edit
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.code.torch_xla import OPTIONAL, aside, needs_torch_xla, statement_call
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SPAWN = "torch_xla.distributed.xla_multiprocessing.spawn"
_LAUNCH = ("torch_xla.launch", "torch_xla.torch_xla.launch")
_GONE = ("torch_xla.distributed.xla_dist", "torch_xla.distributed.xla_spawn")
_NOTE = (
    "start it with torchrun, one process a chip, and call torch.distributed.init_process_group at the start of the "
    "function; without torchrun it is one process"
)


class StartOneProcess(PythonRule):
    """``xmp.spawn(f, args=...)`` and ``torch_xla.launch(f, args=...)`` start a process for each chip.

    With torch_tpu the processes come from torchrun, so the function is called directly, with the local rank in the place of
    the index. One process by ``nprocs=1`` stays one. For more, a process group has to be made and the fix is unsafe.

    Fixed where the file cannot be loaded without torch_xla and the call is a statement. Imports of launchers that no longer
    exist (``xla_dist``, ``xla_spawn``) are reported.
    """

    ID = "TPU937"
    NAME = "start-one-process"
    FAMILY = "I"
    GRADE = Grade.UNSAFE
    MESSAGE = "this starts processes through torch_xla; with torch_tpu torchrun starts them"
    TRIGGERS = ("spawn", "launch(", "xla_dist")
    REQUIRES = ("torch_xla",)
    COVERS = ("I3", "D11", "D13")
    VALID = ("import torch_xla\nimport torch.multiprocessing as mp\nmp.spawn(f)\nlauncher.launch(f)\n",)
    INVALID = (
        Invalid(
            "import torch_xla.distributed.xla_multiprocessing as xmp\nif __name__ == '__main__':\n"
            "    xmp.spawn(main, args=(flags, 3), nprocs=8)\n",
            "import os\n\nimport torch_xla.distributed.xla_multiprocessing as xmp\nif __name__ == '__main__':\n"
            '    main(int(os.environ.get("LOCAL_RANK", "0")), flags, 3)\n',
            unsafe=True,
        ),
        Invalid(
            "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(main, nprocs=1)\n",
            "import torch_xla.distributed.xla_multiprocessing as xmp\nmain(0)\n",
        ),
        Invalid(
            "import os\nimport torch_xla\ntorch_xla.launch(main, args=(flags,))\n",
            'import os\nimport torch_xla\nmain(int(os.environ.get("LOCAL_RANK", "0")), flags)\n',
            unsafe=True,
        ),
        Invalid("import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(main, args=given)\n", None),
        Invalid("from torch_xla.distributed import xla_dist\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the starts, and imports of launchers."""
        for call in module.calls(_SPAWN, *_LAUNCH):
            if aside(module, call):
                continue
            text = _direct(module, call) if needs_torch_xla(module) else None
            if text is None:
                note = _NOTE if needs_torch_xla(module) else OPTIONAL
                yield Match(*module.span(call), grade=Grade.ADVICE, note=note)
                continue
            single = _is_one(argument(call, "nprocs", 2))
            edits: list[Edit] = [module.replace(call, text)]
            fix = imported(module, edits, *(() if single else ("os.environ",)))
            grade = Grade.SAFE if single else None
            yield Match(*module.span(call), fix=fix, grade=grade, note=None if single else _NOTE)
        statements: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
        for statement in statements:
            names = [alias.name for alias in statement.names]
            if isinstance(statement, ast.ImportFrom):
                names = [f"{statement.module}.{name}" for name in names]
            if any(name.startswith(_GONE) for name in names) and not aside(module, statement):
                yield Match(*module.span(statement), grade=Grade.ADVICE, note="torchrun starts the processes")


def _is_one(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value == 1


def _direct(module: Module, call: ast.Call) -> str | None:
    """The call of the started function itself."""
    function, given = argument(call, "fn", 0), argument(call, "args", 1)
    known = all(k.arg in ("fn", "args", "nprocs", "start_method", "join", "daemon") for k in call.keywords)
    if function is None or spread(call) or not known or statement_call(module, call) is None:
        return None
    if given is not None and not isinstance(given, ast.Tuple):
        return None
    rank = "0" if _is_one(argument(call, "nprocs", 2)) else f'int({spell(module, "os.environ")}.get("LOCAL_RANK", "0"))'
    values = [rank, *(module.text(element) for element in (given.elts if given else ()))]
    return f"{module.text(function)}({', '.join(values)})"
