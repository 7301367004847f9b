"""Compares gradients of module outputs and of parameters, and finds where they first part on the way back."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from torchtpu.proof.checks.forward import told
from torchtpu.proof.compare import GRADIENTS, Figures, Problem, Sides
from torchtpu.proof.ratio import Error, Units
from torchtpu.proof.recording import Gradient, Recording, Step, Tensor


def check(sides: Sides, figures: dict[str, Figures]) -> list[Problem]:
    """The problems of the backward pass."""
    found = [*_unset(sides), *_degenerate(sides)] if sides.strict else list(_unscaled(sides))
    inner = list(_inner(sides, figures[GRADIENTS]))
    outer = list(_parameters(sides, figures[GRADIENTS], after_backward=not inner and not found))
    return [*found, *inner, *outer]


def _unscaled(sides: Sides) -> Iterator[Problem]:
    """Half precision that lost the scaler which keeps its small gradients from vanishing."""
    scaled = any(loss.scale != 1.0 for run in sides.jitters for loss in run.losses)
    bare = sides.candidate.losses and all(loss.scale == 1.0 for loss in sides.candidate.losses)
    if not (scaled and bare):
        return
    half = [call for call in sides.candidate.calls if any(t.dtype == "float16" for t in call.outputs.values())]
    if half:
        said = (
            f"the original scales the loss, the migrated program does not, though {sides.described(half[0].name)}"
            f" computes in float16: {_vanished(sides)} gradients vanish. Use bfloat16 there, or scale"
        )
        yield Problem(GRADIENTS, "scaling", said, "loss", sides.place("backward"), half[0].step)


def _vanished(sides: Sides) -> str:
    halves = [g.value for g in sides.candidate.gradients if g.value.dtype == "float16" and g.value.size]
    worst = max((tensor.data.get("zeros", 0) / tensor.size for tensor in halves), default=0.0)
    return f"up to {worst:.0%} of a module's"


def _unset(sides: Sides) -> Iterator[Problem]:
    for step, other in sides.steps():
        known = {*step.gradients, *step.unset}
        lost = [name for name in other.unset if name in known and name not in step.unset]
        won = [name for name in step.unset if name not in other.unset and name in {*other.gradients, *other.unset}]
        if lost or won:
            names, said = (
                (lost, "no gradient reaches") if lost else (won, "a gradient reaches, unlike in the original,")
            )
            place = sides.place(names[0].rpartition(".")[0])
            said = f"{said} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
            yield Problem(GRADIENTS, "structure", f"{said} at step {step.number}", names[0], place, step.number)
            return


def _degenerate(sides: Sides) -> Iterator[Problem]:
    steps = [pair for pair in sides.steps() if pair[0].gradients]
    if steps and all(_nothing(step) and _nothing(other) for step, other in steps):
        yield Problem(GRADIENTS, "degenerate", "every gradient is zero or not finite in both: it proves nothing")


def _nothing(step: Step) -> bool:
    return all(tensor.degenerate in ("zero", "not finite") for tensor in step.gradients.values())


def _inner(sides: Sides, figures: Figures) -> Iterator[Problem]:
    theirs = {gradient.key: gradient for gradient in sides.candidate.gradients}
    first: Problem | None = None
    before: Gradient | None = None
    errors = _errors(sides, theirs)
    agreeing = {_call(gradient) for gradient, error in errors.values() if error.ratio <= sides.limit}
    for gradient in sides.reference.gradients:
        if gradient.step > sides.diverged:
            break
        if gradient.key not in theirs:
            if first is None and sides.strict and gradient.occurrence == 1:
                first = _lost(sides, gradient)
            continue
        if gradient.key not in errors:
            continue
        error = errors[gradient.key][1]
        if error.ratio > sides.limit and _call(gradient) in agreeing:
            # What one output passes on through another, as an LSTM's state does, depends on how the module is built;
            # where the whole is wrong, so are the other outputs or the parameters.
            continue
        figures.saw(error.ratio, error.relative, f"output of {gradient.name}, step {gradient.step}", gradient.name)
        if first is None and error.ratio > sides.limit:
            first = _parted(sides, gradient, before, error)
        before = gradient
    if first is not None:
        yield first


def _call(gradient: Gradient) -> Hashable:
    """The call of a module that a gradient's output is of."""
    return gradient.step, gradient.name, gradient.number, gradient.occurrence


def _errors(
    sides: Sides, theirs: dict[tuple[int, str, int, str, int], Gradient]
) -> dict[Hashable, tuple[Gradient, Error]]:
    units: dict[int, Units] = {}
    found: dict[Hashable, tuple[Gradient, Error]] = {}
    for gradient in sides.reference.gradients:
        other = theirs.get(gradient.key)
        if other is None or not gradient.value.is_float or gradient.step > sides.diverged:
            continue
        if gradient.step not in units:
            units[gradient.step] = _units(sides, gradient.step)
        found[gradient.key] = gradient, units[gradient.step].error(gradient.key, other.value)
    return found


def _lost(sides: Sides, gradient: Gradient) -> Problem | None:
    called = any(c.name == gradient.name and c.step == gradient.step for c in sides.candidate.calls)
    if not called:
        return None
    said = f"no gradient reaches the output of {sides.described(gradient.name)} at step {gradient.step}"
    return Problem(GRADIENTS, "structure", said, gradient.name, sides.place(gradient.name), gradient.step)


def _parted(sides: Sides, gradient: Gradient, before: Gradient | None, error: Error) -> Problem:
    since = f"; that of {before.name}, just before it on the way back, is not" if before else ""
    if before is None and (source := sides.source()[0]):
        # All outputs agree, and the way back begins with a difference: the loss is of something else.
        since = f"; {source}"
    said = (
        f"the gradient of the output of {sides.described(gradient.name)} is off at step {gradient.step}:"
        f" {told(error)}{since}"
    )
    return Problem(GRADIENTS, "error", said, gradient.name, sides.place(gradient.name), gradient.step, error.ratio)


def _units(sides: Sides, step: int) -> Units:
    def tensors(recording: Recording) -> dict[Hashable, Tensor]:
        return {g.key: g.value for g in recording.gradients if g.step == step and g.value.is_float}

    return Units(tensors(sides.reference), [tensors(jitter) for jitter in sides.jitters], sides.scale)


def _parameters(sides: Sides, figures: Figures, after_backward: bool) -> Iterator[Problem]:
    for step, other in sides.steps():
        if step.number > sides.diverged:
            break
        key = (step.optimizer, step.count)
        units = Units(step.gradients, [_gradients(jitter, key) for jitter in sides.jitters], sides.scale)
        errors: dict[str, Error] = {}
        for name, tensor in step.gradients.items():
            if name not in other.gradients or not tensor.is_float:
                continue
            errors[name] = error = units.error(name, other.gradients[name])
            figures.saw(error.ratio, error.relative, f"{name}, step {step.number}", name)
        off = [name for name, error in errors.items() if error.ratio > sides.limit]
        if off:
            # What is done to gradients after backward is done to most of them.
            after_backward = after_backward and 2 * len(off) > len(errors)
            worst = max(off, key=lambda name: errors[name].ratio)
            yield _off(sides, worst, step.number, errors[worst], after_backward)
            return


def _gradients(recording: Recording, key: tuple[int, int]) -> dict[str, Tensor]:
    return next((s.gradients for s in recording.steps if (s.optimizer, s.count) == key), {})


def _off(sides: Sides, name: str, step: int, error: Error, after_backward: bool) -> Problem:
    said, place = f"the gradient of {name} is off at step {step}: {told(error)}", sides.place(name.rpartition(".")[0])
    if after_backward:
        backward, place = sides.place("backward"), sides.place("step")
        said += (
            "; those of all module outputs are not, and most parameters' are, so they were changed (scale, clipping,"
            f" accumulation) between backward{f' at {backward}' if backward else ''} and the optimizer's step"
        )
    return Problem(GRADIENTS, "error", said, name, place, step, error.ratio)
