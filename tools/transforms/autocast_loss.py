"""Computes forward pass and loss under bfloat16 autocast where the program computes in float32."""

from __future__ import annotations

import ast

from tools.code.calls import device_type_operand, off_cpu_and_cuda
from tools.code.module import Module
from tools.code.rewrite import alone, nest
from tools.code.training_loops import innermost, steps
from tools.transforms.base import Advice, Proposal, Subject, Transform
from torchtpu.lowering.flops import Shapes, operator_flops


class AutocastLoss(Transform):
    """A float32 product is one pass in bfloat16 on a TPU by default, but its operands are twice as large in memory.

    The statements from the first that calls something on the way to the loss up to the loss are put under
    ``torch.autocast``, which the CPU and CUDA do not take part in. Only plain assignments that stand together directly
    in the training loop are taken; others are left to a person.
    """

    ID = "autocast-loss"
    TITLE = "forward pass and loss in bfloat16 autocast"
    ORDER = 30
    CHANGES = "rounding"

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if float32_share(subject.step) < 0.5:
            return None
        for path, module in subject.on_path():
            for _, loss, loop in steps(module):
                run = _run(module, loop, loss)
                if run and not _under_autocast(module, run[0]):
                    name, _ = device_type_operand(module, run[0])
                    enabled, edits = off_cpu_and_cuda(module, run[0])
                    torch = module.names.spelling("torch") or "torch"
                    head = f"with {torch}.autocast({name}, dtype={torch}.bfloat16, enabled={enabled}):"
                    title = "compute the loss under bfloat16 autocast off the CPU and CUDA"
                    return Proposal(title, subject.edited(path, [*nest(module, run, head), *edits]))
        return Advice("the statements that lead to the loss do not stand together in the loop, or are in a `with`")


def float32_share(step: dict[str, object]) -> float:
    """Share of the operations of matrix products that take float32."""
    shapes, wide, total = Shapes(step), 0.0, 0.0
    for entry in step["operators"]:  # type: ignore[attr-defined]
        flops = operator_flops(entry, shapes)
        total += flops
        wide += flops * ("float32" in {shapes.dtype(entry, at) for at in range(2)})
    return wide / total if total else 0.0


def _run(module: Module, loop: ast.AST, loss: str) -> list[ast.stmt]:
    """The neighbouring assignments of the loop's body that end with the loss and begin with a call."""
    body: list[ast.stmt] = loop.body  # type: ignore[attr-defined]
    end = next((at for at, statement in enumerate(body) if loss in _assigned(statement)), None)
    if end is None:
        return []
    start, wanted = end, _read(body[end])
    while start > 0 and (made := _assigned(body[start - 1])) and made & wanted and _calls_own(module, body[start - 1]):
        start -= 1
        wanted |= _read(body[start])
    run = body[start : end + 1]
    return run if all(alone(module, statement) for statement in run) else []


def _assigned(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign):
        return set()
    return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _read(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _calls_own(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement calls a thing of the program, such as a model; moves of data are none."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) or _of_torch(module, call) for call in calls) and not any(
        isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "next") for call in calls
    )


def _of_torch(module: Module, call: ast.Call) -> bool:
    return (module.qualify(call.func) or "").startswith("torch.nn.functional.")


def _under_autocast(module: Module, node: ast.AST) -> bool:
    """Whether a `with` of the same loop holds the node, which may be autocast by another name."""
    loop = innermost(module, node)
    for holder in module.ancestors(node):
        if holder is loop:
            return False
        if isinstance(holder, ast.With):
            return True
    return False
