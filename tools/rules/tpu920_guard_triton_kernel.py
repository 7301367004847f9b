"""TPU920: Triton kernels defined when a module is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import cuda_test
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_NOTE = "then write the same computation in PyTorch for other devices; what launches the kernel needs it"


class GuardTritonKernel(PythonRule):
    """``@triton.autotune`` asks for a GPU driver while the module is imported, so the import fails without one.

    Imports of Triton and the functions its decorators make are put behind ``torch.cuda.is_available()``, so that the
    module can be loaded anywhere. What launches a kernel still needs an equivalent for other devices, which a person has
    to write; hence unsafe.

    Fixed where every other use of Triton's names in the file stands inside a function, and torch is imported above. Not
    covered: kernels in classes.
    """

    ID = "TPU920"
    NAME = "guard-triton-kernel"
    FAMILY = "F"
    GRADE = Grade.UNSAFE
    MESSAGE = "this kernel asks for a GPU driver when the module is imported"
    TRIGGERS = ("triton",)
    PATTERN = r"\n@(triton|autotune|jit)\b"
    SCOPE = Scope.FILE
    COVERS = ("F12", "A3")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    import triton\n\n    @triton.jit\n    def k(x):\n        pass\n",
        "import torch\n@jit\ndef f():\n    pass\n# triton\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.autotune(configs=[], key=[])\n@triton.jit\n"
            "def kernel(x, N: tl.constexpr):\n    i = tl.program_id(0)\n\n\ndef launch(x):\n    kernel[(1,)](x, 4)\n",
            "import torch\nif torch.cuda.is_available():\n    import triton\n    import triton.language as tl\n\n\n"
            "    @triton.autotune(configs=[], key=[])\n    @triton.jit\n"
            "    def kernel(x, N: tl.constexpr):\n        i = tl.program_id(0)\n\n\ndef launch(x):\n    kernel[(1,)](x, 4)\n",
            unsafe=True,
        ),
        Invalid(
            "import triton\n@triton.jit\ndef kernel(x):\n    pass\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first kernel of a module that is imported everywhere."""
        kernels = [s for s in module.tree.body if isinstance(s, ast.FunctionDef) and _is_kernel(module, s)]
        imports = [s for s in module.tree.body if isinstance(s, ast.Import | ast.ImportFrom) and _is_triton(s)]
        if not kernels or not imports or on_cuda_path(module, kernels[0]):
            return
        fix = _fix(module, [*imports, *kernels])
        grade = None if fix else Grade.ADVICE
        yield Match(*module.span(kernels[0]), fix=fix, grade=grade, note=_NOTE)


def _is_triton(statement: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return not statement.level and (statement.module or "").partition(".")[0] == "triton"
    return all(alias.name.partition(".")[0] == "triton" for alias in statement.names)


def _is_kernel(module: Module, function: ast.FunctionDef) -> bool:
    names = (module.names.qualify(d.func if isinstance(d, ast.Call) else d) or "" for d in function.decorator_list)
    return any(name.startswith("triton.") for name in names)


def _fix(module: Module, statements: list[ast.stmt]) -> Fix | None:
    wanted = sorted(statements, key=_first_line)
    torch = any(
        isinstance(s, ast.Import) and any(a.name == "torch" and not a.asname for a in s.names)
        for s in module.tree.body[: module.tree.body.index(wanted[0])]
    )
    if not torch or _used_outside(module, wanted) or any(_has_long_string(s) for s in wanted):
        return None
    source = module.source
    edits: list[Edit] = []
    previous: ast.stmt | None = None
    for statement in wanted:
        first = source.starts[_first_line(statement) - 1]
        opens = previous is None or module.tree.body.index(statement) != module.tree.body.index(previous) + 1
        for line in range(_first_line(statement), (statement.end_lineno or 0) + 1):
            start = source.starts[line - 1]
            text = source.indent if source.line(line).strip() else ""
            if start == first and opens:
                text = f"if {cuda_test(module)}:{source.newline}{text}"
            if text:
                edits.append(Edit(start, start, text))
        previous = statement
    return Fix(tuple(edits))


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return int(min(d.lineno for d in decorators)) if decorators else statement.lineno


def _has_long_string(statement: ast.stmt) -> bool:
    texts = (n for n in ast.walk(statement) if isinstance(n, ast.JoinedStr | ast.Constant))
    return any(n.lineno != n.end_lineno and (isinstance(n, ast.JoinedStr) or isinstance(n.value, str)) for n in texts)


def _used_outside(module: Module, guarded: list[ast.stmt]) -> bool:
    """Whether a name that would be bound on CUDA only is used while the module is loaded."""
    bound = set()
    for statement in guarded:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound |= {a.asname or a.name.partition(".")[0] for a in statement.names}
        else:
            bound.add(getattr(statement, "name", ""))
    return any(
        isinstance(node, ast.Name) and node.id in bound
        for statement in module.tree.body
        if statement not in guarded
        for node in _at_import(statement)
    )


def _at_import(statement: ast.stmt) -> Iterator[ast.AST]:
    """What is evaluated when the module is loaded: everything but the bodies of functions."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            children = [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]
            children += [a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation]
        elif isinstance(node, ast.Lambda):
            children = []
        pending += children
