"""One Python module as rules see it: the nodes near interesting words, their parents, names and exact text."""

from __future__ import annotations

import ast
import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TypeVar

from tools.code.carve import carve
from tools.code.edits import Edit
from tools.code.names import Names
from tools.code.source import SourceFile, Unreadable, parse
from tools.project import Project

Node = TypeVar("Node", bound=ast.AST)

Fact = TypeVar("Fact")

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS: tuple[type[Function], ...] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Interest:
    """The lines of a file that matter, sorted, from 1.

    Attributes:
        lines: those with a word of a rule, or with a name that an import gives a thing with such a word.
        classes: those of rules that look at whole classes.
        whole: whether some rule needs the whole file.
    """

    lines: Sequence[int]
    classes: Sequence[int] = ()
    whole: bool = True


class Module:
    """A parsed file with an index of the nodes on lines that matter.

    Walking a whole syntax tree in Python costs several times its parsing, so only statements that touch a line of
    interest (or an import) are visited; ``walk_all`` is there for the rare rule that needs more.

    Args:
        source: the file.
        project: facts about the repository around it.
        interest: the lines worth looking at, or the words that make them so.
        whole: whether definitions without such a line are parsed too; a scan does without them in long files, and so
            does not see a syntax error in one.

    Raises:
        Unreadable: if the file does not parse.
    """

    def __init__(
        self, source: SourceFile, project: Project, interest: Interest | Sequence[str], *, whole: bool = True
    ) -> None:
        if not isinstance(interest, Interest):
            interest = Interest(_lines_with(source, source.text, interest))
        self.source = source
        self.project = project
        self.carved = not (whole or interest.whole or "\r" in source.text or len(source.text) < _LONG)
        self.tree = _parse_carved(source, interest) if self.carved else parse(source)
        self.facts: dict[object, object] = {}
        self._parents: dict[ast.AST, ast.AST] = {}
        self._qualified: dict[ast.expr, str | None] = {}
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._lines = sorted({*interest.lines, *_lines_with(source, source.code, ("import",))})
        self._visit(self.tree)

    def _visit(self, root: ast.AST) -> None:
        parents, by_type, lines = self._parents, self._by_type, self._lines
        last_line = lines[-1] if lines else 0
        pending = [root]
        while pending:
            node = pending.pop()
            by_type[type(node)].append(node)
            children = _children(node)
            while children:
                child = children.pop()
                end = getattr(child, "end_lineno", None)
                if end is not None:
                    decorators = getattr(child, "decorator_list", None)
                    first = decorators[0].lineno if decorators else child.lineno  # type: ignore[attr-defined]
                    if first > last_line:
                        continue
                    index = bisect.bisect_left(lines, first)
                    if index == len(lines) or lines[index] > end:
                        continue
                parents[child] = node
                pending.append(child)

    def nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """Visited nodes of the given types, each type in source order."""
        for kind in kinds:
            yield from self._by_type.get(kind, ())  # type: ignore[misc]

    @cached_property
    def walk_all(self) -> list[ast.AST]:
        """Every node of the module, for data flow; costs a full walk, done at most once."""
        return list(ast.walk(self.tree))

    @cached_property
    def names(self) -> Names:
        """The module's import bindings and simple aliases."""
        imports = [*self.nodes(ast.Import), *self.nodes(ast.ImportFrom)]
        inner = {s for s in imports if any(isinstance(h, (*FUNCTIONS, ast.ClassDef)) for h in self.ancestors(s))}
        unreal = {s for s in imports if any(is_for_checkers(h) for h in self.ancestors(s))}
        return Names([*imports, *self.nodes(ast.Assign)], inner, unreal)

    # --- position and text -------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end character offsets of a node; decorators are not part of it."""
        source = self.source
        start = source.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = source.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return start, end

    def text(self, node: ast.AST) -> str:
        """The node's own characters."""
        start, end = self.span(node)
        return self.source.text[start:end]

    def replace(self, node: ast.AST, replacement: str) -> Edit:
        """An edit that puts ``replacement`` in the node's place, in an f-string with the quotes that are free there."""
        for parent in self.ancestors(node):
            if isinstance(parent, ast.JoinedStr):
                replacement = _requoted(self.text(parent).lstrip("fFrRbBuU"), replacement)
        return Edit(*self.span(node), replacement)

    # --- structure -----------------------------------------------------------------------------------------------

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The enclosing node, None for the module (or for a node that was not visited)."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Enclosing nodes, innermost first."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds the node."""
        for candidate in (node, *self.ancestors(node)):
            if isinstance(candidate, ast.stmt):
                return candidate
        raise ValueError("the module itself is in no statement")

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """The innermost function around a node, None at module or class level."""
        for candidate in self.ancestors(node):
            if isinstance(candidate, FUNCTIONS):
                return candidate
        return None

    def qualify(self, node: ast.expr) -> str | None:
        """The dotted name ``node`` stands for, unless a parameter of an enclosing function hides it."""
        if node not in self._qualified:
            self._qualified[node] = self._qualify(node)
        return self._qualified[node]

    def _qualify(self, node: ast.expr) -> str | None:
        dotted = self.names.qualify(node)
        if dotted is None:
            return None
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and any(
            root.id in parameters(f) for f in self.ancestors(node) if isinstance(f, FUNCTIONS)
        ):
            return None
        return dotted

    def calls(self, *dotted: str) -> Iterator[ast.Call]:
        """Visited calls of any of the given dotted names."""
        for call in self.nodes(ast.Call):
            name = self.qualify(call.func)
            if name is not None and name in dotted:
                yield call

    def references(self, *dotted: str) -> Iterator[ast.expr]:
        """Visited names and attributes that stand for any of the given dotted names (calls' functions included)."""
        for node in self.nodes(ast.Attribute, ast.Name, ast.Call):
            if self.names.qualify(node) in dotted and self.qualify(node) in dotted:
                yield node


def fact(find: Callable[[Module], Fact]) -> Callable[[Module], Fact]:
    """Decorator for what is found out about a module as a whole: it is asked for every finding, and found once."""

    @wraps(find)
    def once(module: Module) -> Fact:
        if find not in module.facts:
            module.facts[find] = find(module)
        return module.facts[find]  # type: ignore[return-value]

    return once


def _requoted(literal: str, text: str) -> str:
    """The text with the other quotes, where those of the string literal around it would end it."""
    quote = literal[:3] if literal[:3] in ('"""', "'''") else literal[:1]
    other = {'"': "'", "'": '"'}.get(quote, quote)
    return text.replace(quote, other) if quote in text and other not in text else text


def around(holds: Callable[[Module, ast.AST, ast.AST], bool]) -> Callable[[Module, ast.AST], bool]:
    """Decorator for what holds for a node by one of the nodes around it; each of them is asked once.

    The function is given the module, a node, and the node in it on the way down.
    """

    @wraps(holds)
    def anywhere(module: Module, node: ast.AST) -> bool:
        known: dict[ast.AST, bool] = module.facts.setdefault(holds, {})  # type: ignore[assignment]
        passed: list[ast.AST] = []
        while node not in known:
            parent = module.parent(node)
            if parent is None or holds(module, parent, node):
                known[node] = parent is not None
            else:
                passed.append(node)
                node = parent
        known.update(dict.fromkeys(passed, known[node]))
        return known[node]

    return anywhere


def _children(node: ast.AST) -> list[ast.AST]:
    """Nodes one level down in source order, without expression contexts."""
    children: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if value.__class__ is list:
            children += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            children.append(value)
    return children


def _lines_with(source: SourceFile, text: str, words: Sequence[str]) -> list[int]:
    """Sorted numbers of a source's lines that hold one of the words in its text or in its code."""
    starts = source.starts
    lines: set[int] = set()
    for word in words:
        place = text.find(word)
        while place >= 0:
            line = bisect.bisect_right(starts, place)
            lines.add(line)
            place = text.find(word, starts[line]) if line < len(starts) else -1
    return sorted(lines)


_LONG = 2_000
"""Characters from which leaving out bodies saves more than it costs."""


def _parse_carved(source: SourceFile, interest: Interest) -> ast.Module:
    try:
        return parse(source, carve(source.text, source.code, source.starts, interest.lines, interest.classes))
    except Unreadable:
        return parse(source)


def is_for_checkers(holder: ast.AST) -> bool:
    """Whether it is an ``if TYPE_CHECKING:``, under which nothing runs."""
    test = holder.test if isinstance(holder, ast.If) else None
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Names of a function's parameters."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return frozenset(a.arg for a in every if a is not None)


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument ``name`` of a call."""
    return next((k for k in call.keywords if k.arg == name), None)


def string(node: ast.AST | None) -> str | None:
    """The value of a string literal."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
