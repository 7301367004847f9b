"""Finds for each instruction of a compiled program the recorded operator it comes from."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from torchtpu.hlo.parse import Instruction, Module
from torchtpu.lowering.places import OPERATOR

_INDEX = re.compile(rf"{OPERATOR}(\d+)\.")
_FAR = 6


class Attribution:
    """Operators by instruction.

    An instruction the compiler made without saying for what (a copy, a conversion, a moved loop) belongs to
    what is inside it, else to what it takes its input from, else to what takes its output.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.users: dict[str, list[str]] = defaultdict(list)
        for lines in module.computations.values():
            for one in lines:
                for operand in one.operands:
                    self.users[operand].append(one.name)

    def said(self, one: Instruction) -> int | None:
        """Returns the operator that the compiler names."""
        match = _INDEX.match(self.module.functions.get(one.frame or 0, ""))
        return int(match[1]) if match else None

    def inside(self, one: Instruction, depth: int = 0) -> int | None:
        """Returns the operator most of what an instruction calls belongs to, by elements."""
        weights: Counter[int] = Counter()
        for name in one.called if depth < _FAR else ():
            for inner in self.module.computations.get(name, []):
                found = self.said(inner)
                found = self.inside(inner, depth + 1) if found is None else found
                if found is not None:
                    weights[found] += sum(shape.elements for shape in inner.shapes) + 1
        return weights.most_common(1)[0][0] if weights else None

    def _near(self, one: Instruction, forward: bool) -> int | None:
        level, seen = [one.name], {one.name}
        for _ in range(_FAR):
            following = []
            for name in level:
                known = self.module.by_name.get(name)
                around = self.users[name] if forward else known.operands if known else ()
                following += [other for other in around if other not in seen]
            seen.update(following)
            for name in following:
                other = self.module.by_name.get(name)
                found = None if other is None or other.opcode == "parameter" else self.said(other)
                found = self.inside(other) if found is None and other is not None else found
                if found is not None:
                    return found
            level = following
        return None

    def operator(self, one: Instruction) -> int | None:
        """Returns the number of the operator; None where nothing tells."""
        for found in (self.said(one), self.inside(one), self._near(one, False), self._near(one, True)):
            if found is not None:
                return found
        return None
