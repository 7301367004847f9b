"""What a name in a Python file stands for: imports, aliases and ``getattr`` resolved to dotted names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable


class Names:
    """Bindings of one module.

    Imports anywhere in the file count for the whole file, which is what nearly all code means; a function parameter of
    the same name hides them (the caller passes the parameters in force to ``qualify``).

    Args:
        statements: import statements and simple assignments, in any order.
        inner: those of the imports that stand in a function or class, and bind nothing for the whole module.
        unreal: those that are for type checkers alone, and bind nothing at all.
    """

    def __init__(
        self, statements: Iterable[ast.stmt], inner: Collection[ast.stmt] = (), unreal: Collection[ast.stmt] = ()
    ) -> None:
        self._bound: dict[str, str] = {}
        self._outer: dict[str, str] = {}
        self._inner: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._spellings: dict[str, str | None] = {}
        assignments: list[ast.Assign] = []
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                bound = imported(statement)
                self._bound |= bound
                if statement not in unreal:
                    (self._inner if statement in inner else self._outer).update(bound)
            elif isinstance(statement, ast.Assign):
                assignments.append(statement)
        for assignment in assignments:
            self._alias(assignment)

    def _alias(self, statement: ast.Assign) -> None:
        if len(statement.targets) == 1 and isinstance(target := statement.targets[0], ast.Name):
            value = self.qualify(statement.value)
            if (
                value
                and value.startswith("torch.")
                and isinstance(statement.value, ast.Attribute | ast.Name | ast.Call)
            ):
                self._aliases[target.id] = self._bound.setdefault(target.id, value)

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
        """How this file can write ``dotted``: through the longest binding that is a prefix of it, or None.

        An import that holds for the whole module is preferred to one of a function, and that to an assigned alias.
        """
        if dotted not in self._spellings:
            self._spellings[dotted] = self._spelling(dotted)
        return self._spellings[dotted]

    def _spelling(self, dotted: str) -> str | None:
        for bound in (self._outer, self._inner, self._aliases):
            best: tuple[int, str] | None = None
            for name, value in bound.items():
                if dotted == value or dotted.startswith(value + "."):
                    written = name + dotted[len(value) :]
                    if best is None or len(value) > best[0]:
                        best = (len(value), written)
            if best:
                return best[1]
        return None

    def binds(self, dotted: str) -> bool:
        """Whether some name of the file stands for exactly ``dotted``."""
        return dotted in self._bound.values()


def imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, and what each stands for."""
    if isinstance(statement, ast.Import):
        heads = ((alias.asname, alias.name, alias.name.partition(".")[0]) for alias in statement.names)
        return dict((asname, name) if asname else (head, head) for asname, name, head in heads)
    module = "." * statement.level + (statement.module or "")
    bound = {}
    for alias in statement.names:
        if alias.name != "*":
            # `from .common import torch` hands on the same package under the same name.
            known = alias.name in ("torch", "torch_xla") and not module.startswith(alias.name)
            bound[alias.asname or alias.name] = alias.name if known else f"{module}.{alias.name}"
    return bound
