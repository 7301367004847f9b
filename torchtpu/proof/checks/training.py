"""Compares training: steps, schedules, losses, parameters, statistics, ties; and that anything moves at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping

from torchtpu.proof.checks.forward import told
from torchtpu.proof.compare import TRAINS, Figures, Problem, Sides
from torchtpu.proof.ratio import Units, scalars
from torchtpu.proof.recording import LOW, Recording, Snapshot, Tensor

_MEMBERS: list[tuple[str, Callable[[Snapshot], Mapping[str, Tensor]]]] = [
    ("parameter", lambda shot: shot.parameters),
    ("buffer", lambda shot: shot.buffers),
    ("optimizer state", lambda shot: shot.memory),
]


def check(sides: Sides, figures: dict[str, Figures]) -> list[Problem]:
    """The problems of training."""
    found: list[Problem] = []
    if sides.strict:
        for look in (_steps, _membership, _schedules, _loss_kinds, _ties, _moves, _statistics_move, _degenerate):
            found += look(sides)
    else:
        found += _narrower(sides)
    found += _curve(sides, figures[TRAINS])
    states = list(_states(sides, figures[TRAINS]))
    return [*found, *states] if sides.strict else found


def _steps(sides: Sides) -> Iterator[Problem]:
    mine, theirs = _counts(sides.reference), _counts(sides.candidate)
    if mine != theirs:
        said = f"the original makes {_told(mine)}, the migrated program {_told(theirs)}"
        source, place = sides.source() if theirs else ("", "")
        said += f"; {source}" if source else ""
        yield Problem(TRAINS, "structure", said, place=place or sides.place("step"))
        return
    losses, others = len(sides.reference.losses), len(sides.candidate.losses)
    # An optimizer that searches, such as LBFGS, stops where rounding lets it.
    if losses != others and all(len(jitter.losses) == losses for jitter in sides.jitters):
        said = f"gradients are asked for {losses} times in the original, {others} times in the migrated program"
        yield Problem(TRAINS, "structure", said, place=sides.place("backward"))


def _counts(recording: Recording) -> dict[int, int]:
    counts: dict[int, int] = {}
    for step in recording.steps:
        counts[step.optimizer] = max(step.count, counts.get(step.optimizer, 0))
    return counts


def _told(counts: Mapping[int, int]) -> str:
    return " and ".join(f"{count} optimizer steps" for count in counts.values()) or "no optimizer step"


def _membership(sides: Sides) -> Iterator[Problem]:
    for shot, other in sides.snapshots():
        outside = [name for name in other.outside if name in shot.parameters and name not in shot.outside]
        frozen = [name for name in other.frozen if name in shot.parameters and name not in shot.frozen]
        for names, said in ((outside, "is not among the optimizer's parameters"), (frozen, "is frozen")):
            if names:
                more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
                place = sides.place(names[0].rpartition(".")[0])
                yield Problem(TRAINS, "structure", f"{names[0]}{more} {said}, unlike in the original", names[0], place)
                return


def _schedules(sides: Sides) -> Iterator[Problem]:
    for step, other in sides.steps():
        # What is different from the start was so made; what only becomes so is changed where the program steps.
        place = sides.place(f"optimizer {step.optimizer}" if step.count == 1 else "step")
        if step.type != other.type:
            said = f"optimizer {step.optimizer} is {other.type} instead of {step.type}"
            yield Problem(TRAINS, "schedule", said, place=place, step=step.number)
            return
        if len(step.groups) != len(other.groups):
            said = f"the optimizer has {len(other.groups)} parameter groups instead of {len(step.groups)}"
            yield Problem(TRAINS, "schedule", said, place=place, step=step.number)
            return
        for number, (mine, theirs) in enumerate(zip(step.groups, other.groups, strict=True)):
            for option in sorted(mine):
                if not _close(mine[option], theirs.get(option)):
                    said = (
                        f"{option} of parameter group {number} is {theirs.get(option)} at step {step.number},"
                        f" {mine[option]} in the original"
                    )
                    yield Problem(TRAINS, "schedule", said, option, place, step.number)
                    return


def _close(mine: object, theirs: object) -> bool:
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(_close(a, b) for a, b in zip(mine, theirs, strict=True))
    if isinstance(mine, int | float) and isinstance(theirs, int | float):
        return math.isclose(mine, theirs, rel_tol=1e-6, abs_tol=1e-12)
    return mine == theirs


def _loss_kinds(sides: Sides) -> Iterator[Problem]:
    for mine, theirs in zip(sides.reference.losses, sides.candidate.losses, strict=False):
        if theirs.dtype in LOW and mine.dtype not in LOW:
            said = f"the loss is {theirs.dtype}, {mine.dtype} in the original"
            yield Problem(TRAINS, "structure", said, "loss", sides.place("backward"), mine.step)
            return
        if sides.device not in (None, "cpu") and theirs.device == "cpu":
            said = "the loss is computed on the CPU"
            yield Problem(TRAINS, "device", said, "loss", sides.place("backward"), mine.step)
            return
    for step in sides.candidate.steps:
        if sides.device not in (None, "cpu") and "cpu" in step.devices:
            said = "the optimizer's parameters are on the CPU"
            yield Problem(TRAINS, "device", said, place=sides.place("step"), step=step.number)
            return


def _narrower(sides: Sides) -> Iterator[Problem]:
    """A loss with fewer bits than the original has in the same precision."""
    for mine, theirs in zip(sides.jitters[0].losses if sides.jitters else (), sides.candidate.losses, strict=False):
        if theirs.dtype in LOW and mine.dtype not in LOW:
            said = f"the loss is {theirs.dtype}, {mine.dtype} in the original in its own precision"
            yield Problem(TRAINS, "structure", said, "loss", sides.place("backward"), mine.step)
            return


def _ties(sides: Sides) -> Iterator[Problem]:
    for shot, other in sides.snapshots():
        kept = {frozenset(names) for names in other.ties}
        broken = [names for names in shot.ties if not any(set(names) <= names_kept for names_kept in kept)]
        if broken:
            said = (
                f"{' and '.join(broken[0])} are one parameter in the original and separate ones in the migrated program"
            )
            place = sides.place(broken[0][-1].rpartition(".")[0])
            yield Problem(TRAINS, "ties", said, broken[0][0], place)
            return


def _ends(recording: Recording, optimizer: int) -> tuple[Snapshot, Snapshot] | None:
    shots = [shot for shot in recording.snapshots if shot.optimizer == optimizer]
    # Before a module's first call its parameters have no names yet, as with LBFGS, which steps and then calls.
    named = [shot for shot in shots if not shot.parameters.keys().isdisjoint(shots[-1].parameters)]
    return (named[0], named[-1]) if len(named) > 1 else None


def _moves(sides: Sides) -> Iterator[Problem]:
    """Parameters that stay as they are."""
    for optimizer in sorted({shot.optimizer for shot in sides.reference.snapshots}):
        mine, theirs = _ends(sides.reference, optimizer), _ends(sides.candidate, optimizer)
        if mine is None or theirs is None:
            continue
        moved, seen = _moved(mine, "parameters"), _moved(theirs, "parameters")
        still = [name for name in moved if name not in seen and name in theirs[0].parameters]
        if not moved:
            said = "no parameter ever moves in the original: its training proves nothing"
            yield Problem(TRAINS, "degenerate", said)
        elif still:
            more = f" and {len(still) - 1} more" if len(still) > 1 else ""
            said = f"{still[0]}{more} never moves, unlike in the original"
            yield Problem(TRAINS, "structure", said, still[0], sides.place(still[0].rpartition(".")[0]))


def _moved(ends: tuple[Snapshot, Snapshot], kind: str) -> list[str]:
    first: dict[str, Tensor] = getattr(ends[0], kind)
    last: dict[str, Tensor] = getattr(ends[1], kind)
    return [name for name, tensor in first.items() if name in last and not tensor.same_bits(last[name])]


def _statistics_move(sides: Sides) -> Iterator[Problem]:
    """Buffers such as the running statistics of a BatchNorm that stay as they are."""
    for optimizer in sorted({shot.optimizer for shot in sides.reference.snapshots}):
        mine, theirs = _ends(sides.reference, optimizer), _ends(sides.candidate, optimizer)
        if mine is None or theirs is None:
            continue
        gone = [name for name in mine[0].buffers if name not in theirs[0].buffers]
        if gone:
            said = f"the migrated program lacks the buffer {gone[0]}"
            yield Problem(TRAINS, "statistics", said, gone[0], sides.place(gone[0].rpartition(".")[0]))
            return
        seen = _moved(theirs, "buffers")
        still = [name for name in _moved(mine, "buffers") if name not in seen and name in theirs[0].buffers]
        if still:
            more = f" and {len(still) - 1} more" if len(still) > 1 else ""
            said = f"the buffer {still[0]}{more} never changes, unlike in the original"
            yield Problem(TRAINS, "statistics", said, still[0], sides.place(still[0].rpartition(".")[0]))
            return


def _degenerate(sides: Sides) -> Iterator[Problem]:
    mine = [loss.value for loss in sides.reference.losses if loss.value is not None]
    theirs = [loss.value for loss in sides.candidate.losses if loss.value is not None]
    if mine and not any(math.isfinite(value) for value in mine):
        yield Problem(TRAINS, "degenerate", "the loss is never finite, in the original too: it proves nothing")
    elif len(mine) > 2 and len(set(mine)) == 1 and len(set(theirs)) == 1:
        yield Problem(TRAINS, "degenerate", "the loss is constant in both: it proves nothing")


def _losses(recording: Recording) -> list[float]:
    return [math.nan if loss.value is None else loss.value for loss in recording.losses]


def _norms(recording: Recording) -> list[float]:
    return [step.norm for step in recording.steps]


def _curve(sides: Sides, figures: Figures) -> Iterator[Problem]:
    for what, values in (("loss", _losses), ("gradient norm", _norms)):
        near = [values(jitter) for jitter in sides.jitters]
        errors = scalars(values(sides.reference), near, values(sides.candidate), sides.scale)
        first = True
        for number, error in enumerate(errors, 1):
            figures.saw(error.ratio, error.relative, f"{what} {number}")
            if first and error.ratio > sides.limit:
                first = False
                mine, theirs = values(sides.reference)[number - 1], values(sides.candidate)[number - 1]
                said = f"{what} number {number} is {theirs:.7g}, {mine:.7g} in the original: {told(error)}"
                place = sides.place("backward" if what == "loss" else "step")
                yield Problem(TRAINS, "error", said, what, place, number, error.ratio)


def _states(sides: Sides, figures: Figures) -> Iterator[Problem]:
    for what, members in _MEMBERS:
        for shot, other in sides.snapshots():
            problem = _apart(sides, what, shot, members, other, figures) if shot.count else None
            if problem is not None:
                yield problem
                break


def diverged(sides: Sides) -> float:
    """The first step whose loss, gradient norm or state is off; infinite where none is."""
    found = [math.inf]
    near = sides.jitters
    numbers = [[loss.step for loss in sides.reference.losses], [step.number for step in sides.reference.steps]]
    for steps, values in zip(numbers, (_losses, _norms), strict=True):
        errors = scalars(values(sides.reference), [values(run) for run in near], values(sides.candidate), sides.scale)
        found += [step for step, error in zip(steps, errors, strict=False) if error.ratio > sides.limit][:1]
    theirs = {(shot.optimizer, shot.count): shot for shot in sides.candidate.snapshots}
    for shot in sides.reference.snapshots:
        other = theirs.get((shot.optimizer, shot.count))
        for _, members in _MEMBERS[:2]:
            if other is not None and shot.count and _apart(sides, "", shot, members, other, Figures()) is not None:
                found.append(shot.count)
    return min(found)


def _apart(
    sides: Sides,
    what: str,
    shot: Snapshot,
    members: Callable[[Snapshot], Mapping[str, Tensor]],
    other: Snapshot,
    figures: Figures,
) -> Problem | None:
    def numbers(one: Snapshot | None) -> dict[Hashable, Tensor]:
        return {name: tensor for name, tensor in members(one).items() if tensor.is_float} if one else {}

    key = (shot.optimizer, shot.count)
    near = [next((s for s in jitter.snapshots if (s.optimizer, s.count) == key), None) for jitter in sides.jitters]
    units = Units(numbers(shot), [numbers(one) for one in near], sides.scale)
    worst: Problem | None = None
    seen = members(other)
    for name, tensor in members(shot).items():
        if not tensor.is_float or name not in seen:
            continue
        error = units.error(name, seen[name])
        figures.saw(error.ratio, error.relative, f"{what} {name} after step {shot.count}", name)
        if error.ratio > sides.limit and (worst is None or error.ratio > (worst.ratio or 0.0)):
            said = f"{what} {name} is off after step {shot.count}: {told(error)}"
            place = sides.place(name.rpartition(".")[0])
            worst = Problem(TRAINS, "error", said, name, place, shot.count, error.ratio)
    return worst
