"""TPU301: mixed precision through the deprecated ``torch.cuda.amp``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.absence import stands_in
from tools.code.calls import add_keyword, prepend_argument, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.code.older import AMP, is_for_older
from tools.code.rewrite import import_edits, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_OLD = {
    f"torch.cuda.amp.{module}{name}": name
    for name, home in (
        ("autocast", "autocast_mode."),
        ("custom_fwd", "autocast_mode."),
        ("custom_bwd", "autocast_mode."),
        ("GradScaler", "grad_scaler."),
    )
    for module in ("", home)
}
_MODULE = "torch.cuda.amp"
_SPARE = "the name is torch.amp's or, in older releases, torch.cuda.amp's; name the device where the two are told apart"
_STAND_IN = (
    "the file has a stand-in of the same name for older releases, which takes no device: drop it or give it one, "
    "then name the device at each use"
)
_AUTOCAST_PARAMETERS = ("enabled", "dtype", "cache_enabled")


class NameAmpDevice(PythonRule):
    """``torch.cuda.amp.autocast()`` is ``torch.amp.autocast("cuda")`` under a name without a device.

    The names of ``torch.cuda.amp`` (``autocast``, ``GradScaler``, ``custom_fwd``, ``custom_bwd``) become their twins in
    ``torch.amp`` with the device ``"cuda"`` written out, which is the same on every machine; the rules after this one then
    decide about the device. Imports of the old names are rewritten where nothing else uses them.

    Not covered: the class handed on without a call (``context = autocast if use_amp else nullcontext``), which would lose
    its device; that is left to a person, like star arguments.
    """

    ID = "TPU301"
    NAME = "name-amp-device"
    FAMILY = "C"
    MESSAGE = "torch.cuda.amp is for CUDA alone and deprecated; torch.amp takes the device"
    WHOLE_WORDS = True
    TRIGGERS = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
    COVERS = ("C1", "C3", "C5")
    VALID = (
        "import torch\nwith torch.amp.autocast('cuda'):\n    pass\n",
        "from apex import amp\nmodel, opt = amp.initialize(model, opt)\n",
        "import torch\nif torch.cuda.is_available():\n    scaler = torch.cuda.amp.GradScaler()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nwith torch.cuda.amp.autocast(enabled=args.amp):\n    y = f(x)\n",
            'import torch\nwith torch.amp.autocast("cuda", enabled=args.amp):\n    y = f(x)\n',
        ),
        Invalid(
            "import torch\nscaler = torch.cuda.amp.GradScaler()\nother = torch.cuda.amp.GradScaler(2.0**10)\n",
            'import torch\nscaler = torch.amp.GradScaler("cuda")\nother = torch.amp.GradScaler("cuda", 2.0**10)\n',
            count=2,
        ),
        Invalid(
            "from torch.cuda.amp import autocast, GradScaler\nscaler = GradScaler()\nwith autocast(use_amp, torch.bfloat16):\n"
            "    pass\n",
            'from torch.amp import autocast, GradScaler\nscaler = GradScaler("cuda")\n'
            'with autocast("cuda", enabled=use_amp, dtype=torch.bfloat16):\n    pass\n',
            count=2,
        ),
        Invalid(
            "from torch.cuda.amp import (\n    autocast as half,\n    GradScaler as Scaler,\n)\n\nscaler = Scaler()\n"
            "with half():\n    pass\n",
            "from torch.amp import (\n    autocast as half,\n    GradScaler as Scaler,\n)\n\n"
            'scaler = Scaler("cuda")\nwith half("cuda"):\n    pass\n',
            count=2,
        ),
        Invalid(
            "from torch.cuda import amp\n\n@amp.autocast()\ndef f(x):\n    return x\n",
            'from torch import amp\n\n@amp.autocast("cuda")\ndef f(x):\n    return x\n',
        ),
        Invalid(
            "from torch.cuda.amp import custom_bwd, custom_fwd\n\nclass F(Function):\n    @staticmethod\n"
            "    @custom_fwd(cast_inputs=torch.float32)\n    def forward(ctx, x):\n        return x\n\n"
            "    @staticmethod\n    @custom_bwd\n    def backward(ctx, g):\n        return g\n",
            "from torch.amp import custom_bwd, custom_fwd\n\nclass F(Function):\n    @staticmethod\n"
            '    @custom_fwd(cast_inputs=torch.float32, device_type="cuda")\n    def forward(ctx, x):\n        return x\n\n'
            '    @staticmethod\n    @custom_bwd(device_type="cuda")\n    def backward(ctx, g):\n        return g\n',
            count=2,
        ),
        Invalid(
            "from torch.cuda.amp import autocast\nfrom contextlib import nullcontext\n"
            "context = autocast if use_amp else nullcontext\nwith autocast():\n    pass\n",
            "import torch\nfrom torch.cuda.amp import autocast\nfrom contextlib import nullcontext\n"
            'context = autocast if use_amp else nullcontext\nwith torch.amp.autocast("cuda"):\n    pass\n',
            count=2,
        ),
        Invalid(
            "try:\n    from torch.amp import autocast\nexcept ImportError:\n    from torch.cuda.amp import autocast\n"
            "with autocast():\n    pass\n",
            None,
        ),
        Invalid(
            "import torch\nif V(torch.__version__) >= V('1.6'):\n    from torch.cuda.amp import autocast\nelse:\n"
            "    def autocast(enabled=True):\n        yield\n\nwith autocast(False):\n    f()\nwith autocast(False):\n    g()\n",
            None,
        ),
        Invalid(
            "import torch\n\ndef train(scaler: torch.cuda.amp.GradScaler):\n    pass\n",
            "import torch\n\ndef train(scaler: torch.amp.GradScaler):\n    pass\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields uses of the old names off the CUDA-only path."""
        uses = [u for u in _uses(module) if not on_cuda_path(module, u)]
        spare = _spare_names(module)
        for use in uses:
            if _root(use).id in spare and not _only_a_type(module, use):
                yield Match(*module.span(use), grade=Grade.ADVICE, note=_SPARE)
        uses = [u for u in uses if _root(u).id not in spare]
        stand_ins = _stand_ins(module)
        replaced = [u for u in uses if isinstance(u, ast.Name) and u.id in stand_ins]
        for use in {u.id: u for u in reversed(replaced)}.values():
            yield Match(*module.span(use), grade=Grade.ADVICE, note=_STAND_IN)
        uses = [u for u in uses if u not in replaced]
        renames = {id(use): self._arguments(module, use) for use in uses}
        imports = _imports(module) if all(e is not None for e in renames.values()) else None
        whole: list[Edit] = list(imports or ())
        for use in uses:
            edits = renames[id(use)]
            if edits is not None and imports is not None:
                whole += edits if _bound_by_import(module, use) else [*edits, *_rename(module, use)]
        shared = Fix(tuple(whole)) if imports is not None and whole else None
        for use in uses:
            start, end = module.span(use)
            edits = renames[id(use)]
            if edits is None and _OLD[module.qualify(use) or ""] == "GradScaler" and is_for_older(module, AMP):
                continue  # its twin came late; TPU303 disables it as it is
            if edits is None:
                yield Match(start, end, grade=Grade.ADVICE, note="used without a call; write the device in by hand")
            else:
                yield Match(start, end, fix=shared or Fix((*edits, *_rename(module, use), *import_edits(module))))

    def _arguments(self, module: Module, use: ast.expr) -> list[Edit] | None:
        """What naming the device changes at one use besides the name, None where it cannot be named."""
        name = _OLD[module.qualify(use) or ""]
        if name != "autocast" and is_for_older(module, AMP):
            return None
        parent = module.parent(use)
        if isinstance(parent, ast.Call) and parent.func is use:
            return _call_edits(module, parent, name)
        if name.startswith("custom_") and _is_decorator(parent, use):
            end = module.span(use)[1]
            return [Edit(end, end, '(device_type="cuda")')]
        return [] if name == "GradScaler" and _only_a_type(module, use) else None


def _call_edits(module: Module, call: ast.Call, name: str) -> list[Edit] | None:
    if spread(call) and name != "GradScaler":
        return None
    if name.startswith("custom_"):
        return None if call.args else [add_keyword(module, call, 'device_type="cuda"')]
    if keyword(call, "device_type") or keyword(call, "device"):
        return None
    edits = [prepend_argument(module, call, '"cuda"')]
    if name == "autocast":
        if len(call.args) > len(_AUTOCAST_PARAMETERS):
            return None
        for parameter, value in zip(_AUTOCAST_PARAMETERS, call.args, strict=False):
            start, _ = module.span(value)
            edits.append(Edit(start, start, f"{parameter}="))
        if call.args:
            # Both go in at one place, where their order would be that of their text.
            edits[0:2] = [Edit(edits[1].start, edits[1].start, f'"cuda", {edits[1].replacement}')]
    return edits


def _uses(module: Module) -> list[ast.expr]:
    found = [n for n in module.nodes(ast.Attribute, ast.Name) if module.qualify(n) in _OLD]
    return sorted(found, key=lambda n: module.span(n))


def _rename(module: Module, use: ast.expr) -> list[Edit]:
    name = _OLD[module.qualify(use) or ""]
    return [module.replace(use, spell(module, f"torch.amp.{name}"))]


def _is_decorator(parent: ast.AST | None, use: ast.expr) -> bool:
    return isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and use in parent.decorator_list


def _only_a_type(module: Module, use: ast.expr) -> bool:
    """Whether a class is named in an annotation or a type test, where no object is made."""
    child: ast.AST = use
    for parent in module.ancestors(use):
        if isinstance(parent, ast.arg | ast.AnnAssign) and child is parent.annotation:
            return True
        if isinstance(parent, ast.FunctionDef) and child is parent.returns:
            return True
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Name) and parent.func.id == "isinstance" and child in parent.args[1:]
        child = parent
    return False


def _bound_by_import(module: Module, use: ast.expr) -> bool:
    """Whether the name at its root comes from an import of ``torch.cuda.amp`` or from it, which is rewritten."""
    bound = module.names.qualify(_root(use))
    return bound is not None and bound.startswith(_MODULE)


def _root(use: ast.expr) -> ast.Name:
    while isinstance(use, ast.Attribute):
        use = use.value
    assert isinstance(use, ast.Name)
    return use


def _spare_names(module: Module) -> frozenset[str]:
    """Names that a handler or a branch for older releases binds to the old classes, so that they may be either."""
    statements: list[ast.ImportFrom | ast.Import] = [*module.nodes(ast.ImportFrom), *module.nodes(ast.Import)]
    old = (s for s in statements if _binds_old(s) is not None and stands_in(module, s))
    return frozenset(alias.asname or alias.name for s in old for alias in s.names)


def _stand_ins(module: Module) -> frozenset[str]:
    """Names that the file defines itself where an older release lacks them, with parameters that have no device."""
    return frozenset(
        inner.name
        for branch in module.tree.body
        if isinstance(branch, ast.If | ast.Try)
        for inner in ast.walk(branch)
        if isinstance(inner, ast.FunctionDef | ast.ClassDef)
    )


def _imports(module: Module) -> list[Edit] | None:
    """Edits that take the imports from ``torch.amp`` instead, None where a use outside this rule depends on them."""
    edits: list[Edit] = []
    statements: list[ast.ImportFrom | ast.Import] = [*module.nodes(ast.ImportFrom), *module.nodes(ast.Import)]
    for statement in statements:
        bound = _binds_old(statement)
        if bound is None or stands_in(module, statement):
            continue
        if not bound or _used_otherwise(module, bound):
            return None
        edits += _import_edit(module, statement)
    return edits


def _binds_old(statement: ast.ImportFrom | ast.Import) -> list[str] | None:
    """The names a statement binds to old things; empty where it binds others beside them, None where it is not ours."""
    if isinstance(statement, ast.Import):
        ours = [a for a in statement.names if a.name.startswith(_MODULE) and a.asname]
        if not ours:
            return None
        return [ours[0].asname or ""] if len(statement.names) == 1 and ours[0].name == _MODULE else []
    source = statement.module or ""
    names = [alias.asname or alias.name for alias in statement.names]
    if source == "torch.cuda" and any(a.name == "amp" for a in statement.names):
        return names if len(names) == 1 else []
    if source.startswith(_MODULE):
        return names if all(f"{source}.{a.name}" in _OLD for a in statement.names) else []
    return None


def _used_otherwise(module: Module, names: list[str]) -> bool:
    """Whether a bound name is used in a way this rule does not rewrite, or kept on a CUDA-only path."""
    text = module.source.text
    if "__all__" in text or module.source.relative.endswith("__init__.py"):
        return True
    for node in module.walk_all:
        if isinstance(node, ast.Name) and node.id in names:
            whole: ast.AST = node
            while isinstance(parent := module.parent(whole), ast.Attribute):
                whole = parent
            if not isinstance(whole, ast.expr) or module.qualify(whole) not in _OLD or on_cuda_path(module, whole):
                return True
    return False


def _import_edit(module: Module, statement: ast.ImportFrom | ast.Import) -> list[Edit]:
    start, end = module.span(statement)
    text = module.source.text[start:end]
    if isinstance(statement, ast.Import):
        old, new = _MODULE, "torch.amp"
    elif statement.module == "torch.cuda":
        old, new = "torch.cuda", "torch"
    else:
        old, new = statement.module or "", "torch.amp"
    place = start + text.index(old)
    return [Edit(place, place + len(old), new)]
