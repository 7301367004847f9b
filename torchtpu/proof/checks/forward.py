"""Compares batches, initial weights and module outputs, and finds the module at which an error begins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

from torchtpu.proof.compare import FORWARD, Figures, Problem, Sides, shown
from torchtpu.proof.ratio import Error, Units
from torchtpu.proof.recording import Call, Recording, Tensor

_WEIGHTS_APART = 1e-4


def check(sides: Sides, figures: dict[str, Figures]) -> list[Problem]:
    """The problems of the forward pass."""
    found: list[Problem] = []
    if sides.strict:
        found += [*_weights(sides), *_batches(sides), *_structure(sides), *_devices(sides), *_degenerate(sides)]
    return [*found, *_Errors(sides, figures[FORWARD]).problems()]


def _weights(sides: Sides) -> Iterator[Problem]:
    theirs = {shot.optimizer: shot for shot in sides.candidate.snapshots if shot.count == 0}
    for shot in sides.reference.snapshots:
        if shot.count or shot.optimizer not in theirs:
            continue
        others = theirs[shot.optimizer].parameters
        apart = [
            name for name, tensor in shot.parameters.items()
            if name in others and tensor.distance(others[name]) > _WEIGHTS_APART * max(tensor.norm, 1e-30)
        ]  # fmt: skip
        if apart:
            said = f"{len(apart)} of {len(shot.parameters)} parameters differ before the first step, first {apart[0]}"
            yield Problem(FORWARD, "weights", said, apart[0], sides.place(apart[0].rpartition(".")[0]), 0)
            return


def is_root(call: Call) -> bool:
    """Whether the program itself calls the module, as its name shows."""
    return "." not in call.name


def _batches(sides: Sides) -> Iterator[Problem]:
    theirs = {call.key: call for call in sides.candidate.calls}
    made = _made(sides.reference)
    for call in sides.reference.calls:
        other = theirs.get(call.key)
        if not is_root(call) or other is None:
            continue
        for path, tensor in call.inputs.items():
            seen = other.inputs.get(path)
            if seen is None or id(tensor) in made or tensor.same_bits(seen):
                continue
            if tensor.shape != seen.shape or not tensor.is_float or tensor.distance(seen) > 1e-3 * tensor.norm:
                said = f"the input {path} of {sides.described(call.name)} at step {call.step} is not the same batch"
                if tensor.shape != seen.shape:
                    said += f": {list(seen.shape)} instead of {list(tensor.shape)}"
                source, place = sides.source()
                said += f"; {source}" if source else ""
                yield Problem(FORWARD, "data", said, call.name, place or sides.place(call.name), call.step)
                return


def _made(recording: Recording) -> set[int]:
    return {id(tensor) for call in recording.calls for tensor in call.outputs.values()}


def _structure(sides: Sides) -> Iterator[Problem]:
    mine, theirs = _names(sides.reference), _names(sides.candidate)
    lost = [name for name in mine if name not in theirs]
    new = [name for name in theirs if name not in mine]
    if lost:
        said = f"{len(lost)} modules are not called, first {sides.described(lost[0])}"
        yield Problem(FORWARD, "structure", said, lost[0], sides.place(lost[0]))
    if new:
        said = f"{len(new)} modules are called that the original does not call, first {sides.described(new[0])}"
        yield Problem(FORWARD, "structure", said, new[0], sides.place(new[0]))
    both = {name for name in mine if name in theirs}
    yield from _counts(sides, both)


def _names(recording: Recording) -> dict[str, None]:
    return dict.fromkeys(name for _, name, _ in recording.counts)


def _counts(sides: Sides, both: set[str]) -> Iterator[Problem]:
    mine, theirs = sides.reference.counts, sides.candidate.counts
    last = min(max((step for step, _, _ in counts), default=0) for counts in (mine, theirs))
    differing: Counter[str] = Counter()
    first: tuple[int, str, str] | None = None
    for key in sorted({*mine, *theirs}):
        step, name, mode = key
        if name in both and step <= last and mine.get(key, 0) != theirs.get(key, 0):
            first = first or key
            differing[mode] += 1
    if first is not None:
        step, name, mode = first
        other = {m: n for (s, who, m), n in theirs.items() if (s, who) == (step, name)}
        said = (
            f"{sides.described(name)} is called {mine.get(first, 0)} times in mode {mode} at step {step} by the"
            f" original, {theirs.get(first, 0)} times by the migrated program"
        )
        if other and not theirs.get(first):
            said += f" (in mode {', '.join(sorted(other))} instead)"
        yield Problem(FORWARD, "structure", said, name, sides.place(name), step)


def _devices(sides: Sides) -> Iterator[Problem]:
    """Modules that compute on the CPU although the device is another."""
    if sides.device in (None, "cpu"):
        return
    elsewhere = [
        call for call in sides.candidate.calls
        if any(t.is_float and t.device == "cpu" for t in call.outputs.values()) and not call.mode.endswith("nograd")
    ]  # fmt: skip
    if elsewhere:
        call = elsewhere[0]
        names = len({c.name for c in elsewhere})
        said = f"{names} modules compute on the CPU, first {sides.described(call.name)}"
        yield Problem(FORWARD, "device", said, call.name, sides.place(call.name), call.step)


def _degenerate(sides: Sides) -> Iterator[Problem]:
    """Outputs whose equality shows nothing."""
    theirs = {call.key: call for call in sides.candidate.calls}
    roots = [call for call in sides.reference.calls if is_root(call) and call.key in theirs]
    for call in roots:
        for path, tensor in call.outputs.items():
            seen = theirs[call.key].outputs.get(path)
            why = tensor.degenerate
            if why and seen is not None and seen.degenerate == why:
                said = f"output {path or '0'} of {sides.described(call.name)} is {why} in both: it proves nothing"
                yield Problem(FORWARD, "degenerate", said, call.name, sides.place(call.name), call.step)
                return


class _Errors:
    """Finds the first call whose output is off though its inputs are not."""

    def __init__(self, sides: Sides, figures: Figures) -> None:
        self._sides = sides
        self._figures = figures
        self._theirs = {call.key: call for call in sides.candidate.calls}
        self._units: dict[int, Units] = {}

    def problems(self) -> Iterator[Problem]:
        """One problem: the place where the error begins; what follows from it is not repeated."""
        first: Problem | None = None
        for call in self._sides.reference.calls:
            other = self._theirs.get(call.key)
            # Where weights are off already, so is everything they compute.
            if other is None or call.step > self._sides.diverged:
                continue
            before = self._worst(call, call.inputs, other.inputs, "in")
            after = self._worst(call, call.outputs, other.outputs, "out", self._figures)
            if first is None and max(before[1].ratio, after[1].ratio) > self._sides.limit:
                first = self._problem(call, before, after)
        if first is not None:
            yield first

    def _worst(
        self,
        call: Call,
        mine: Mapping[str, Tensor],
        theirs: Mapping[str, Tensor],
        side: str,
        figures: Figures | None = None,
    ) -> tuple[str, Error]:
        worst = "", Error(0.0, 0.0, 0.0)
        for path, tensor in mine.items():
            if not tensor.is_float:
                continue
            seen = theirs.get(path)
            key = (call.key, side, path)
            error = Error(math.inf, math.inf, 0.0) if seen is None else self._of(call.step).error(key, seen)
            if figures is not None:
                figures.saw(error.ratio, error.relative, f"{call.name}, step {call.step}", call.name)
            if error.ratio > worst[1].ratio:
                worst = path, error
        return worst

    def _of(self, step: int) -> Units:
        if step not in self._units:
            jitters = [_tensors(jitter, step) for jitter in self._sides.jitters]
            self._units[step] = Units(_tensors(self._sides.reference, step), jitters, self._sides.scale)
        return self._units[step]

    def _problem(self, call: Call, before: tuple[str, Error], after: tuple[str, Error]) -> Problem:
        sides = self._sides
        if before[1].ratio > sides.limit:
            (path, error), place = before, sides.place(call.name)
            what = f"the input {path} of {sides.described(call.name)} is off although no module's output before it is"
        else:
            # What it calls was looked at before; so the difference is in its own lines, where those are the user's.
            (path, error), place = after, sides.place(call.name, inside=True)
            what = f"the output {path or '0'} of {sides.described(call.name)} is off although its inputs are not"
        shape = _shapes(call, self._theirs[call.key])
        said = f"{what}, at step {call.step}: {told(error)}{shape}"
        return Problem(FORWARD, "error", said, call.name, place, call.step, error.ratio)


def told(error: Error) -> str:
    """An error for a person."""
    if math.isinf(error.relative):
        return "shape, kind or finiteness differ"
    return f"error ratio {shown(error.ratio)} (relative error {error.relative:.2g}, rounding alone {error.unit:.2g})"


def _shapes(call: Call, other: Call) -> str:
    for path, tensor in {**call.inputs, **call.outputs}.items():
        seen = {**other.inputs, **other.outputs}.get(path)
        if seen is not None and seen.shape != tensor.shape:
            return f"; shape {list(seen.shape)} instead of {list(tensor.shape)}"
    return ""


def _tensors(recording: Recording, step: int) -> dict[Hashable, Tensor]:
    found: dict[Hashable, Tensor] = {}
    for call in recording.calls:
        if call.step == step:
            found |= {(call.key, "in", path): t for path, t in call.inputs.items() if t.is_float}
            found |= {(call.key, "out", path): t for path, t in call.outputs.items() if t.is_float}
    return found
