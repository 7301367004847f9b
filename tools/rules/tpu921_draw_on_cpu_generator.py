"""TPU921: random generators on the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, fact, keyword, parameters, string
from tools.code.rewrite import CUDA_AVAILABLE, cuda_test
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DRAWS = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "normal", "empty"))
_SAMPLES = frozenset({"torch.multinomial", "torch.bernoulli"})
_IN_PLACE = frozenset(
    {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"}
)
_NOTE = "draw on generator.device and move the result; a generator and the tensor it fills must be on one device"


class DrawOnCpuGenerator(PythonRule):
    """``torch.Generator(device="cuda")`` fails without CUDA, and a generator on a TPU hangs in torch_tpu 0.2.0.

    The generator stays where it was on CUDA and on the CPU; elsewhere it is the CPU's, and draws that name it are made on
    its device and moved: the numbers on CUDA and on the CPU are the same as before.

    Not covered: generators handed to other files, and draws with a generator that the file does not make itself.
    """

    ID = "TPU921"
    NAME = "draw-on-cpu-generator"
    FAMILY = "H"
    MESSAGE = "a generator on the device fails without CUDA and hangs on a TPU; draw on the CPU there"
    WHOLE_WORDS = True
    TRIGGERS = ("Generator(", "generator=")
    COVERS = ("H6",)
    VALID = (
        "import torch\ng = torch.Generator().manual_seed(1)\nx = torch.randperm(4, generator=g)\n",
        "import torch\ng = torch.Generator(device='cpu')\n",
        "import torch\ng = torch.Generator('cuda') if torch.cuda.is_available() else torch.Generator()\n",
        "import torch\ng = torch.Generator(device=device if torch.cuda.is_available() else 'cpu')\n",
        "import torch\ng = torch.Generator('cuda' if torch.cuda.is_available() else 'cpu')\n",
    )
    INVALID = (
        Invalid(
            "import torch\nrng = torch.Generator(device=device)\nrng.manual_seed(42)\n"
            "ix = torch.multinomial(probs, 1, generator=rng) # (B, 1)\n",
            "import torch\nrng = torch.Generator(device=device if torch.cuda.is_available() else 'cpu')\nrng.manual_seed(42)\n"
            "ix = torch.multinomial(probs.to(rng.device), 1, generator=rng).to(probs.device) # (B, 1)\n",
            count=2,
        ),
        Invalid(
            'import torch\ng = torch.Generator("cuda").manual_seed(0)\nx = torch.randn(2, 3, generator=g, device="cuda")\n',
            'import torch\ng = torch.Generator("cuda" if torch.cuda.is_available() else "cpu").manual_seed(0)\n'
            'x = torch.randn(2, 3, generator=g, device=g.device).to("cuda")\n',
            count=2,
        ),
        Invalid(
            "import torch\ng = torch.Generator(dev)\nw = torch.randn(2, generator=g, device=dev, requires_grad=True)\n",
            "import torch\ng = torch.Generator(dev if torch.cuda.is_available() else 'cpu')\n"
            "w = torch.randn(2, generator=g, device=g.device, requires_grad=False).to(dev).requires_grad_()\n",
            count=2,
        ),
        Invalid(
            "import torch\n\ndef draw(p, g=None):\n    if p is None:\n        g = torch.Generator(device=p.device)\n"
            "    return torch.multinomial(p, 1, generator=g)\n",
            "import torch\n\ndef draw(p, g=None):\n    if p is None:\n"
            "        g = torch.Generator(device=p.device if torch.cuda.is_available() else 'cpu')\n"
            "    return torch.multinomial(p, 1, generator=g)\n",
            count=2,
        ),
        Invalid(
            "import torch\n\ndef draw(p, seed):\n    g = None\n    if seed:\n"
            "        g = torch.Generator(p.device if torch.cuda.is_available() else 'cpu')\n"
            "    return torch.multinomial(p, 1, generator=g)\n",
            None,
        ),
        Invalid(
            "import torch\n\nclass Noise:\n    def __init__(self, seed, device):\n"
            "        self.g = torch.Generator(device).manual_seed(seed) if seed else None\n\n"
            "    def draw(self, n, device):\n        return torch.rand(n, generator=self.g, device=device)\n",
            "import torch\n\nclass Noise:\n    def __init__(self, seed, device):\n"
            "        self.g = torch.Generator(device if torch.cuda.is_available() else 'cpu').manual_seed(seed) if seed else None\n\n"
            "    def draw(self, n, device):\n        return torch.rand(n, generator=self.g, device=device)\n",
            count=2,
        ),
        Invalid(
            "import torch\ng = torch.Generator(device)\nx.normal_(generator=g)\n",
            "import torch\ng = torch.Generator(device if torch.cuda.is_available() else 'cpu')\nx.normal_(generator=g)\n",
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields generators on a device, and draws that use one of this file."""
        for call in module.calls("torch.Generator"):
            place = _place(call)
            if place is not None and not on_cuda_path(module, call):
                text = f"{module.text(place)} if {cuda_test(module)} else {_quoted(module, call)}"
                fix = imported(module, [module.replace(place, text)], CUDA_AVAILABLE)
                yield Match(*module.span(call), fix=fix)
        made = _variables(module)
        for call in module.nodes(ast.Call) if made else ():
            used = keyword(call, "generator")
            if used is None or dotted(used.value) not in made or on_cuda_path(module, call):
                continue
            yield from _draw(
                module, call, module.text(used.value), certain=_is_certain(module, call, dotted(used.value) or "")
            )


def _place(call: ast.Call) -> ast.expr | None:
    """The device of a generator, None where it is the CPU or is decided already."""
    place = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if place is None or string(place) == "cpu" or isinstance(place, ast.IfExp):
        return None
    return place


def _quoted(module: Module, call: ast.Call) -> str:
    quote = '"' if '"' in module.text(call) or ("'" not in module.source.text and '"' in module.source.text) else "'"
    return f"{quote}cpu{quote}"


def _variables(module: Module) -> frozenset[str]:
    """Variables that hold a generator made on a device in this file."""
    return frozenset(name for assignment in _makers(module) for t in assignment.targets if (name := dotted(t)))


@fact
def _makers(module: Module) -> list[ast.Assign]:
    """Assignments of a generator that is not the CPU's, or that was made one of it by this rule."""
    return [s for s in module.nodes(ast.Assign) if any(_on_device(module, n) for n in ast.walk(s.value))]


def _on_device(module: Module, call: ast.AST) -> bool:
    if not (isinstance(call, ast.Call) and module.qualify(call.func) == "torch.Generator"):
        return False
    place = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    return place is not None and string(place) != "cpu"


def _is_certain(module: Module, call: ast.Call, name: str) -> bool:
    """Whether a name holds a generator made here at a call, and never None or what somebody else gave.

    It does where every binding of the name in the function (in the file, for one bound outside functions) makes one,
    outside of any branch that the call is not in.
    """
    scope = module.function(call)
    if "." in name or (scope is not None and name in parameters(scope)):
        return False
    bound = _stores(scope, name) if scope is not None else []
    bound = bound or _stores(module.tree, name)
    made = {id(t): s for s in _makers(module) for t in s.targets}
    return bool(bound) and all(id(t) in made and _reaches(module, made[id(t)], call) for t in bound)


def _stores(root: ast.AST, name: str) -> list[ast.AST]:
    return [n for n in ast.walk(root) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]


def _reaches(module: Module, assignment: ast.Assign, call: ast.Call) -> bool:
    home = module.parent(assignment)
    at_once = isinstance(assignment.value, ast.Call)
    return at_once and (home in (module.tree, module.function(call)) or home in set(module.ancestors(call)))


def _draw(module: Module, call: ast.Call, generator: str, *, certain: bool) -> Iterator[Match]:
    name = module.qualify(call.func)
    end = module.span(call)[1]
    place = keyword(call, "device")
    if not certain and (name in _SAMPLES or (name in _DRAWS and place is not None)):
        if f"{generator}.device" not in module.text(call):
            yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
    elif name in _DRAWS and place is not None:
        if module.text(place.value) != f"{generator}.device":
            moved = _as_leaf(module, call, f".to({module.text(place.value)})")
            fix = Fix((module.replace(place.value, f"{generator}.device"), *moved)) if moved else None
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=None if fix else _NOTE)
    elif name in _SAMPLES and call.args:
        source = dotted(call.args[0])
        if source is not None:
            edits = (
                module.replace(call.args[0], f"{source}.to({generator}.device)"),
                Edit(end, end, f".to({source}.device)"),
            )
            yield Match(*module.span(call), fix=Fix(edits))
        elif f".to({generator}.device)" not in module.text(call.args[0]):
            yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _IN_PLACE:
        yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)


def _as_leaf(module: Module, call: ast.Call, move: str) -> list[Edit]:
    """Edits that move what a call makes; what is moved with a gradient is no leaf, so the gradient is asked for after."""
    end = module.span(call)[1]
    wanted = keyword(call, "requires_grad")
    if wanted is None:
        return [Edit(end, end, move)]
    if not isinstance(wanted.value, ast.Constant):
        return []
    after = f"{move}.requires_grad_()" if wanted.value.value else move
    return [module.replace(wanted.value, "False"), Edit(end, end, after)]
