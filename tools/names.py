"""What a name in a Python file stands for: imports, aliases and ``getattr`` resolved to dotted names."""

from __future__ import annotations

import ast
from collections.abc import Iterable


class Names:
    """Bindings of one module.

    Imports anywhere in the file count for the whole file, which is what nearly all code means; a function parameter of
    the same name hides them (the caller passes the parameters in force to ``qualify``).

    Args:
        statements: import statements and simple assignments, in any order.
    """

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        self._bound: dict[str, str] = {}
        assignments: list[ast.Assign] = []
        for statement in statements:
            if isinstance(statement, ast.Import):
                self._import(statement)
            elif isinstance(statement, ast.ImportFrom):
                self._import_from(statement)
            elif isinstance(statement, ast.Assign):
                assignments.append(statement)
        for assignment in assignments:
            self._alias(assignment)

    def _import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            if alias.asname:
                self._bound[alias.asname] = alias.name
            else:
                head = alias.name.partition(".")[0]
                self._bound[head] = head

    def _import_from(self, statement: ast.ImportFrom) -> None:
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                continue
            # `from .common import torch` hands on the same package under the same name.
            known = alias.name in ("torch", "torch_xla") and not module.startswith(alias.name)
            self._bound[alias.asname or alias.name] = alias.name if known else f"{module}.{alias.name}"

    def _alias(self, statement: ast.Assign) -> None:
        if len(statement.targets) == 1 and isinstance(target := statement.targets[0], ast.Name):
            value = self.qualify(statement.value)
            if (
                value
                and value.startswith("torch.")
                and isinstance(statement.value, ast.Attribute | ast.Name | ast.Call)
            ):
                self._bound.setdefault(target.id, value)

    def qualify(self, node: ast.expr, hidden: frozenset[str] = frozenset()) -> str | None:
        """The dotted name an expression stands for, such as ``torch.cuda.is_available``, or None.

        ``getattr(torch, "cuda")`` with a literal counts as attribute access.
        """
        if isinstance(node, ast.Name):
            return None if node.id in hidden else self._bound.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.qualify(node.value, hidden)
            return f"{base}.{node.attr}" if base else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            if len(node.args) >= 2 and isinstance(key := node.args[1], ast.Constant) and isinstance(key.value, str):
                base = self.qualify(node.args[0], hidden)
                return f"{base}.{key.value}" if base else None
        return None

    def spelling(self, dotted: str) -> str | None:
        """How this file can write ``dotted``: through the longest binding that is a prefix of it, or None."""
        best: tuple[int, str] | None = None
        for name, value in self._bound.items():
            if dotted == value or dotted.startswith(value + "."):
                written = name + dotted[len(value) :]
                if best is None or len(value) > best[0]:
                    best = (len(value), written)
        return best[1] if best else None

    def binds(self, dotted: str) -> bool:
        """Whether some name of the file stands for exactly ``dotted``."""
        return dotted in self._bound.values()
