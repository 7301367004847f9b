"""TPU501: a checkpoint loaded to wherever it was saved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import add_keyword, argument, spread
from tools.code.edits import Fix
from tools.code.guards import assigned, dotted, on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_LOADS = ("torch.load", "torch.serialization.load")
_HUB = ("torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url")


class MapCheckpointToCpu(PythonRule):
    """``torch.load(path)`` puts tensors on the device they were saved from, and fails where that is absent.

    Where what is loaded evidently goes into ``load_state_dict``, which copies it to where the parameters are, it is loaded
    to the CPU first: the same values on every machine, and a file from a CUDA machine opens on any other. Elsewhere it is
    reported, because code that uses the loaded tensors directly may want them where they were.

    Not covered: what data sets and transforms keep on the disk, which was made on the CPU, and loads behind functions of the user's own.
    """

    ID = "TPU501"
    NAME = "map-checkpoint-to-cpu"
    FAMILY = "E"
    MESSAGE = "without map_location a file saved on CUDA only opens on CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("load(", "load_state_dict", "load_state_dict_from_url", "load_url(")
    PATTERN = (
        r"torch(?:\.\w+)*\.load|import torch(?:\.\w+)* as |import[^\n]*\bload\b|import \([^)]*\bload\b"
        r"|load_url|load_state_dict_from_url|[\"']load[\"']"
    )
    COVERS = ("E1", "E2")
    VALID = (
        "import torch\nstate = torch.load(path, map_location='cpu')\nmodel.load_state_dict(state)\n",
        "import torch\nstate = torch.load(path, device)\n",
        "import numpy as np\nx = np.load(path)\n",
        "import torch\ndef load(path, **kwargs):\n    return torch.load(path, **kwargs)\n",
        "import torch\nclass Points(Dataset):\n    pass\n\nclass _MNIST(Dataset):\n    def get(self, i):\n        return torch.load(i)\n",
        "import io, torch\ndef clone(m):\n    with io.BytesIO() as b:\n        torch.save(m, b)\n        b.seek(0)\n        return torch.load(b)\n",
        "import torch\nclass Rate:\n    def save(self, path):\n        d = {'initial_value': self.lr, 'steps': self.n}\n"
        "        torch.save(d, path)\n\n    def load(self, path):\n        self.lr = torch.load(path)['initial_value']\n",
        "import torch\nif torch.cuda.is_available():\n    state = torch.load(path)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nmodel.load_state_dict(torch.load(path, weights_only=True))\n",
            'import torch\nmodel.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))\n',
        ),
        Invalid(
            "import torch\n\ndef resume(model, optimizer):\n    checkpoint = torch.load(path)\n"
            "    weights = {k[7:]: v for k, v in checkpoint['model'].items()}\n    model.load_state_dict(weights)\n"
            "    return checkpoint['epoch']\n",
            'import torch\n\ndef resume(model, optimizer):\n    checkpoint = torch.load(path, map_location="cpu")\n'
            "    weights = {k[7:]: v for k, v in checkpoint['model'].items()}\n    model.load_state_dict(weights)\n"
            "    return checkpoint['epoch']\n",
        ),
        Invalid("import torch\ndata = torch.load('data.pt')\nx = data[0]\n", None),
        Invalid("import torch\nmodel.load_state_dict(torch.load(path, **options))\n", None),
        Invalid("import torch\nd = torch.load(path)\nmodel.load_state_dict(d['m'])\ny = model(d['x'])\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields loads without a map location off the CUDA-only path."""
        for call in module.calls(*_LOADS, *_HUB):
            position = 1 if module.qualify(call.func) in _LOADS else 2
            if argument(call, "map_location", position) is not None or on_cuda_path(module, call):
                continue
            start, end = module.span(call)
            if not spread(call) and _goes_into_a_state(module, call):
                yield Match(start, end, fix=Fix((add_keyword(module, call, 'map_location="cpu"'),)))
            elif (
                not _of_data_set(module, call)
                and not _hands_on(module, call)
                and not _of_numbers(module, call)
                and not _copies(module, call)
            ):
                note = 'add map_location="cpu" if the file may come from CUDA, and move what is used to the device'
                yield Match(start, end, grade=Grade.ADVICE, note=note)


_DATA_SET = re.compile(r"(^|/)(datasets?|transforms?)[/.]")


def _of_data_set(module: Module, call: ast.Call) -> bool:
    """Whether it reads what a data set or a transform keeps, which was made on the CPU."""
    classes = (a for a in module.ancestors(call) if isinstance(a, ast.ClassDef))
    names = (name for c in classes for name in (c.name, *(module.text(base) for base in c.bases)))
    return _DATA_SET.search(module.source.relative) is not None or any("Dataset" in name for name in names)


def _copies(module: Module, call: ast.Call) -> bool:
    """Whether the function saves what it loads, to a place in memory, so that it makes a copy."""
    function = module.function(call)
    if function is None or not call.args:
        return False
    place = re.escape(module.text(call.args[0]))
    return re.search(rf"\bsave\([^\n]*,\s*{place}\s*[,)]", module.text(function)) is not None


_NUMBER = re.compile(
    r"(?i)(^|_)(num|step|steps|epoch|epochs|iter|iters|value|lr|rate|count|counter|score|loss|best)(_|$)"
)


def _of_numbers(module: Module, call: ast.Call) -> bool:
    """Whether the same class or function saves the file, and saves plain numbers in it."""
    outer = [a for a in module.ancestors(call) if isinstance(a, ast.ClassDef | ast.FunctionDef)]
    if not outer:
        return False
    if re.search(r"Scheduler|Anneal|Warmup", getattr(outer[-1], "name", "")):
        return True
    inner = list(ast.walk(outer[-1]))
    saved = [
        c.args[0] for c in inner if isinstance(c, ast.Call) and module.names.qualify(c.func) == "torch.save" and c.args
    ]
    tables = [v for s in saved for v in (assigned(module, s) if isinstance(s, ast.Name) else [s])]
    named = {s.id for s in saved if isinstance(s, ast.Name)}
    tables += [
        n.value
        for n in inner
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id in named for t in n.targets)
    ]
    dicts = [t for t in tables if isinstance(t, ast.Dict)]
    return bool(dicts) and all(_is_number(k, v) for d in dicts for k, v in zip(d.keys, d.values, strict=True))


def _is_number(key: ast.expr | None, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        last = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return last in ("item", "float", "int", "tolist", "str")
    return isinstance(value, ast.Constant) or _NUMBER.search(string(key) or "") is not None


def _hands_on(module: Module, call: ast.Call) -> bool:
    """Whether the call hands on the keywords of its function, so that who calls that decides."""
    function = module.function(call)
    given = {dotted(k.value) for k in call.keywords if k.arg is None}
    kwarg = function.args.kwarg if isinstance(function, ast.FunctionDef) else None
    return kwarg is not None and kwarg.arg in given


def _goes_into_a_state(module: Module, call: ast.Call) -> bool:
    for parent in module.ancestors(call):
        if isinstance(parent, ast.Call) and _loads_state(parent):
            return True
        if isinstance(parent, ast.stmt):
            break
    statement = module.statement(call)
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = {t.id for t in targets if isinstance(t, ast.Name)}
    scope = module.function(call)
    nodes = list(ast.walk(scope)) if scope is not None else module.walk_all
    return bool(names) and _reaches_state(nodes, names) and not _computes_with(nodes, names)


_SCALARS = re.compile(
    r"(?i)epoch|step|iter|args|config|hparam|param_?groups|best|acc|loss|version|seed|name|classes|vocab"
)
_PLAIN = frozenset("print format len int float str join isinstance range info debug warning get pop".split())


def _computes_with(nodes: list[ast.AST], names: set[str]) -> bool:
    """Whether an entry of what is loaded goes into another call, so that it matters where its tensors are."""
    for call in nodes:
        if isinstance(call, ast.Call) and not _loads_state(call):
            last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if last not in _PLAIN and any(_is_entry(argument, names) for argument in call.args):
                return True
    return False


def _is_entry(node: ast.expr, names: set[str]) -> bool:
    entry = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names
    return entry and not _SCALARS.search(string(node.slice) or "")  # type: ignore[attr-defined]


def _reaches_state(nodes: list[ast.AST], names: set[str]) -> bool:
    """Whether one of the names, or a name assigned from it, is an argument of ``load_state_dict``."""
    derived = set(names)
    for node in nodes:
        if isinstance(node, ast.Assign) and _mentions(node.value, names):
            derived |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return any(
        isinstance(node, ast.Call) and _loads_state(node) and any(_mentions(a, derived) for a in node.args)
        for node in nodes
    )


def _loads_state(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))
