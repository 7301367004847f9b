"""TPU108: a comparison with ``"cuda"`` that decides where tensors go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.device_tests import compared_device, conjuncts, off_cpu, places, replicates, type_text
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import is_cuda_literal
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = "a device with an index, such as 'cuda:1', did not pass the old test and passes the new one"


class CompareDeviceType(PythonRule):
    """``if device.type == "cuda":`` around ``.to(device)`` or autocast passes every other accelerator over.

    Where the other branch does not place anything either, the test becomes
    ``device.type not in ("cpu", "meta")``: a tensor on "meta" goes the CPU's way, as it did. Tests for real
    CUDA features (pinned memory with an else branch that moves too, fused optimizers, cuDNN, DataParallel) stay.

    A comparison that is kept in a variable, or is what a function answers, is reported where more hangs on it than a
    feature of CUDA: a file that is written, a batch size.

    Not covered: other spellings than ``==``, ``in`` and ``startswith``.
    """

    ID = "TPU108"
    NAME = "compare-device-type"
    FAMILY = "A"
    MESSAGE = "a comparison with 'cuda' decides where tensors go, so other accelerators take the CPU's way"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A14", "D2")
    VALID = (
        "import torch\non_gpu = device.type == 'cuda'\nif on_gpu:\n    torch.cuda.synchronize()\nloader = f(pin_memory=on_gpu)\n",
        "def supports_fused(device):\n    return device.type == 'cuda'\n",
        "if device_type == 'cuda':\n    x = x.pin_memory().to(device, non_blocking=True)\nelse:\n    x = x.to(device)\n",
        "use_fused = fused and device_type == 'cuda'\n",
        "if device == 'cuda':\n    net = torch.nn.DataParallel(net).cuda()\n    cudnn.benchmark = True\n",
        "import torch\nif device.type == 'cuda':\n    torch.backends.cudnn.benchmark = True\n",
        "if device.type == 'cuda':\n    x = x.cuda()\nelif device.type == 'mps':\n    x = x.to(device)\n",
        "device_type = 'cuda' if device == 'cuda' else 'cpu'\n",
        "import torch\nif 'cuda' in self.device:\n    self.device_type = 'cuda'\n    torch.cuda.set_device(0)\n"
        "else:\n    self.device_type = self.device.split(':')[0]\n",
        "if device_map == 'cuda':\n    model.to(device)\n",
    )
    INVALID = (
        Invalid(
            "import torch\non_gpu = device.type == 'cuda'\n\ndef end():\n    if on_gpu:\n        torch.save(m, 'm.pt')\n",
            None,
        ),
        Invalid("DEVICE = 'cpu'\n\ndef is_gpu():\n    return DEVICE == 'cuda'\n", None),
        Invalid(
            "import torch\nif device.type == 'cuda':\n    model = model.to(device)\n",
            "import torch\nif device.type not in ('cpu', 'meta'):\n    model = model.to(device)\n",
        ),
        Invalid(
            'import torch\nif args.fast and "cuda" in args.device:\n    model.cuda()\n',
            'import torch\nif args.fast and torch.device(args.device).type not in ("cpu", "meta"):\n    model.cuda()\n',
        ),
        Invalid(
            "import torch\nctx = torch.autocast(device_type=kind) if kind_device == 'cuda' else nullcontext()\n",
            "import torch\nctx = torch.autocast(device_type=kind) if torch.device(kind_device).type not in ('cpu', 'meta') else nullcontext()\n",
        ),
        Invalid(
            "import torch\ndevice = 'cuda:1'\nif device == 'cuda':\n    x = x.to(device)\n",
            "import torch\ndevice = 'cuda:1'\nif torch.device(device).type not in ('cpu', 'meta'):\n    x = x.to(device)\n",
            unsafe=True,
        ),
        Invalid(
            "import torch\nx = x.to(dev) if str(dev).startswith('cuda') else x\n",
            "import torch\nx = x.to(dev) if torch.device(dev).type not in ('cpu', 'meta') else x\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields comparisons under which something is placed that the other branch does not place, and kept answers."""
        yield from _kept(module)
        holders: list[ast.If | ast.IfExp] = [*module.nodes(ast.If), *module.nodes(ast.IfExp)]
        for holder in holders:
            tests = [t for t in conjuncts(holder.test) if compared_device(t) is not None]
            if not tests or on_cuda_path(module, holder) or _chooses_name(holder):
                continue
            body: list[ast.AST] = [*holder.body] if isinstance(holder, ast.If) else [holder.body]
            other: list[ast.AST] = [*holder.orelse] if isinstance(holder, ast.If) else [holder.orelse]
            if replicates(module, body) or places(module, other, autocast=True):
                continue
            if other and needs_cuda_call(module, body):
                continue
            if any(isinstance(o, ast.If) for o in other) or not places(module, body, autocast=True):
                continue
            for test in tests:
                text = type_text(module, test, spell(module, "torch.device"))
                if text is not None:
                    quote = _quote(module, test)
                    edit = off_cpu(module, test, text, quote)
                    doubt = _is_whole_name(test) and "cuda:" in module.source.text
                    grade, note = (Grade.UNSAFE, _NOTE) if doubt else (None, None)
                    yield Match(
                        *module.span(test), fix=imported(module, [edit], "torch.device"), grade=grade, note=note
                    )


_KEPT = "the answer of a comparison with 'cuda' is kept, and what hangs on it does not happen on other accelerators"
_ASK = 'ask `!= "cpu"` if any accelerator is meant; keep it where only CUDA is'
_FEATURE = re.compile(
    r"(?i)cuda|cudnn|pin_?memory|non_blocking|autocast|\bamp\b|scaler|fused|channels_last|nccl|half|fp16|float16|compile|"
    r"stream|graph|tf32|flash|triton|kernel|warn|\blog|print|raise|^\s*(pass|else:?|#.*|[)\]}]*)?\s*$"
)
"""Lines that are about features of CUDA, or say something."""
_OF_CUDA = re.compile(
    r"(?i)cuda|nvidia|flash|fused|amp|autocast|half|fp16|bf16|pin|triton|kernel|compile|graph|scaler|support"
)


def _kept(module: Module) -> Iterator[Match]:
    """Comparisons that a plain name keeps, or a function answers, for whatever it is asked."""
    for statement in module.nodes(ast.Assign, ast.Return):
        test = statement.value  # type: ignore[attr-defined]
        if test is None or compared_device(test) is None or type_text(module, test, "torch.device") is None:
            continue
        if on_cuda_path(module, statement):
            continue
        if isinstance(statement, ast.Assign):
            names = [dotted(target) for target in statement.targets]
            decides = len(names) == 1 and names[0] is not None and _hangs_on(module, names[0])
        else:
            function = module.function(statement)
            decides = isinstance(function, ast.FunctionDef) and not _OF_CUDA.search(function.name)
            decides = decides and _is_whole(function)
        if decides:
            yield Match(*module.span(test), _KEPT, grade=Grade.ADVICE, note=_ASK)


def _is_whole(function: ast.AST | None) -> bool:
    """Whether a function does nothing but answer."""
    body = [
        s for s in getattr(function, "body", []) if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    return len(body) == 1


def _hangs_on(module: Module, name: str) -> bool:
    """Whether under ``if name:`` stands more than features of CUDA; told by the lines, as the rest may not be parsed."""
    if _OF_CUDA.search(name):
        return False
    word = re.escape(name)
    asked = re.compile(
        rf"^([ \t]*)(?:el)?if (?:not )?(?:self\.)?{word}\b[^\n]*:[ \t]*\n((?:\1[ \t]+[^\n]*\n|[ \t]*\n)+)", re.M
    )
    lines = (line for match in asked.finditer(module.source.text + "\n") for line in match.group(2).splitlines())
    return any(not _FEATURE.search(line) for line in lines)


def needs_cuda_call(module: Module, region: list[ast.AST]) -> bool:
    """Whether a region calls functions of ``torch.cuda``, so that other devices are better off in its other branch."""
    return any("torch.cuda." in module.text(part) for part in region)


def _chooses_name(holder: ast.If | ast.IfExp) -> bool:
    """Whether it chooses between device names, which TPU109 looks at."""
    return isinstance(holder, ast.IfExp) and is_cuda_literal(holder.body)


def _is_whole_name(test: ast.expr) -> bool:
    """Whether a whole device name is compared, so that ``"cuda:1"`` failed the test and would pass the new one."""
    device = compared_device(test)
    is_type = isinstance(device, ast.Attribute) and device.attr == "type"
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and not is_type


def _quote(module: Module, test: ast.expr) -> str:
    literal = next(n for n in ast.walk(test) if isinstance(n, ast.Constant) and n.value == "cuda")
    return module.text(literal)[-1]
