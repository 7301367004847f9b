"""Keeps what one process runs: its operators, and what they cost in waiting and in compiling.

Operators inside a compiled program run as one and are not seen one by one; what is compiled for them is counted.
Times are the host's; with launches that block, as in a traced run, they include the device's work and compilation.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from torchtpu.inject import writer
from torchtpu.proof import places
from torchtpu.tracing import syncs
from torchtpu.tracing.causes import UNSEEN, Causes, Signature, signature
from torchtpu.tracing.dynamo import Logs

VERSION = 1
MOST_EVENTS = 200_000
MOST_ROWS = 20_000
_SAVE_EVERY = 10.0
_OPS_MODULE = "torch_tpu._internal.device._device_ops_backend"
_LEFT_OUT = ("profiler", "inductor")


@dataclass
class _Row:
    """Calls of one operator with the same shapes and types at one place in one phase."""

    count: int = 0
    seconds: float = 0.0
    first_step: int = 0
    last_step: int = 0


@dataclass
class _Times:
    """How often something happened at one place, and in which steps."""

    count: int = 0
    steps: set[int] = field(default_factory=set)


def compilations() -> int:
    """Programs that TorchTPU has compiled in this process so far."""
    misses = getattr(sys.modules.get(_OPS_MODULE), "_get_cache_misses", None)
    return int(misses()) if misses is not None else 0


class Observer:
    """What a process has run so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid = os.getpid()
        self.began = time.perf_counter()
        self.step, self.phase, self.backward_at = 1, "program", ""
        self.device = "cpu"
        self.rows: dict[tuple[str, Signature, str, str, str], _Row] = {}
        self.waits: dict[tuple[str, str, str], _Times] = {}
        self.sized: dict[tuple[str, str], set[tuple[int, ...]]] = {}
        self.shapes: dict[tuple[str, str, str], dict[tuple[tuple[int, ...], ...], int]] = {}
        self.causes = Causes()
        self.compiled: list[dict[str, Any]] = []
        self.attributed = 0
        self.per_step: dict[int, dict[str, float]] = {}
        self.step_began = self.began
        self.misses = compilations()
        self.events: list[dict[str, Any]] = []
        self.lost = 0
        self.saved = time.monotonic()
        self.logs = Logs(lambda: self.step)
        self.lock = threading.RLock()

    # Operators.

    def starts(self) -> None:
        """When the device is up, and the program is about to begin."""
        self.device = torch._C._get_privateuse1_backend_name() if "torch_tpu" in sys.modules else "cpu"
        self.step_began, self.misses = time.perf_counter(), compilations()

    def ran(self, func: Any, args: Any, kwargs: Any, made: Any, began: float, misses: int) -> None:
        """Takes in one call of an operator."""
        ended = time.perf_counter()
        namespace, _, name = func.name().partition("::")
        if namespace in _LEFT_OUT:
            return
        form, tensors = signature(args, kwargs, torch.Tensor)
        results = [one for one in (made if isinstance(made, list | tuple) else [made]) if isinstance(one, torch.Tensor)]
        if any(type(one).__name__ in ("FakeTensor", "FunctionalTensor") for one in (*tensors, *results)):
            return
        where = self._where([*tensors, *results])
        with self.lock:
            self._ran(func.name(), name.partition(".")[0], form, tensors, results, where, (began, ended), misses)

    def _where(self, tensors: list[Any]) -> str:
        kinds = {one.device.type for one in tensors}
        return self.device if self.device in kinds else next(iter(kinds), "cpu")

    def _ran(
        self,
        full: str,
        name: str,
        form: Signature,
        tensors: list[Any],
        results: list[Any],
        where: str,
        times: tuple[float, float],
        misses: int,
    ) -> None:
        place, phase = self._place()
        plain = Signature(form.shapes, form.dtypes, ())
        row = self._row((full, plain, where, place, phase))
        row.count += 1
        row.seconds += times[1] - times[0]
        row.first_step, row.last_step = row.first_step or self.step, self.step
        if where == self.device:
            seen = self.shapes.setdefault((full, place, phase), {})
            seen[form.shapes] = seen.get(form.shapes, 0) + 1
            self._waits(name, tensors, results, place, phase)
        if misses:
            cause = self.causes.of(full, form)
            if cause == UNSEEN and syncs.sized_by_data(name, tensors):
                cause = syncs.SIZE
            self._compiled(full, cause, place, phase, misses, times[1] - times[0])
        self._event(full, phase, times, {"shapes": str(list(map(list, form.shapes))), "place": place, "device": where})

    def _place(self) -> tuple[str, str]:
        place = places.users_line()
        # Autograd computes on a thread of its own for some devices, where no line is the user's.
        if torch._C._current_graph_task_id() != -1:
            return place or self.backward_at, "backward"
        return place, self.phase

    def _row(self, key: tuple[str, Signature, str, str, str]) -> _Row:
        if key not in self.rows and len(self.rows) >= MOST_ROWS:
            key = (key[0], Signature((), (), ()), key[2], "", "")
        return self.rows.setdefault(key, _Row())

    def _waits(self, name: str, tensors: list[Any], results: list[Any], place: str, phase: str) -> None:
        kind = syncs.kind(name, tensors, results[0] if results else None, self.device)
        if kind is not None:
            self.waited(kind, place, phase)
        if syncs.sized_by_data(name, tensors):
            sizes = self.sized.setdefault((name, place), set())
            sizes |= {tuple(map(int, one.shape)) for one in results[:1] if len(sizes) < 20}

    def waited(self, kind: str, place: str, phase: str) -> None:
        """Takes in one wait of the host for the device."""
        found = self.waits.setdefault((kind, place, phase), _Times())
        found.count += 1
        found.steps.add(self.step)
        self._instant(f"host sync: {kind}", place)

    def _compiled(self, full: str, cause: str, place: str, phase: str, misses: int, seconds: float) -> None:
        self.attributed += misses
        if len(self.compiled) < MOST_ROWS:
            self.compiled.append(
                {
                    "operator": full, "step": self.step, "place": place, "phase": phase, "programs": misses,
                    "cause": cause, "seconds": round(seconds, 4),
                }
            )  # fmt: skip
        self._instant(f"compiled: {full}", place, cause=cause)

    # Steps and phases.

    def next_step(self) -> None:
        """At the end of an optimizer step."""
        with self.lock:
            now, misses = time.perf_counter(), compilations()
            self.per_step[self.step] = {
                "seconds": round(now - self.step_began, 4),
                "compilations": misses - self.misses,
            }
            self._event(f"step {self.step}", "step", (self.step_began, now), {})
            self.step, self.step_began, self.misses = self.step + 1, now, misses
        if time.monotonic() - self.saved > _SAVE_EVERY:
            self.save()

    def _event(self, name: str, phase: str, times: tuple[float, float], args: dict[str, Any]) -> None:
        if len(self.events) >= MOST_EVENTS:
            self.lost += 1
            return
        start, length = (times[0] - self.began) * 1e6, (times[1] - times[0]) * 1e6
        thread = 0 if phase == "step" else threading.get_native_id()
        self.events.append(
            {"name": name, "cat": phase, "ph": "X", "ts": round(start, 1), "dur": round(length, 1), "tid": thread,
             "args": args}
        )  # fmt: skip

    def _instant(self, name: str, place: str, **args: Any) -> None:
        if len(self.events) < MOST_EVENTS:
            at = round((time.perf_counter() - self.began) * 1e6, 1)
            thread = threading.get_native_id()
            said = {"place": place, **args}
            self.events.append(
                {"name": name, "cat": "mark", "ph": "i", "s": "t", "ts": at, "tid": thread, "args": said}
            )

    # What is written.

    def record(self) -> dict[str, Any]:
        """All of it as JSON values."""
        inside = compilations() - self.attributed
        return {
            "version": VERSION, "pid": self.pid, "rank": writer.rank(), "device": self.device,
            "seconds": round(time.perf_counter() - self.began, 3), "steps": self.step - 1,
            "operators": [
                {
                    "name": name, "shapes": list(map(list, form.shapes)), "dtypes": list(form.dtypes), "device": where,
                    "place": place, "phase": phase, "count": row.count, "seconds": round(row.seconds, 4),
                    "first_step": row.first_step, "last_step": row.last_step,
                }
                for (name, form, where, place, phase), row in self.rows.items()
            ],
            "syncs": [
                {"kind": kind, "place": place, "phase": phase, "count": one.count, "steps": sorted(one.steps)[:100]}
                for (kind, place, phase), one in self.waits.items()
            ],
            "dynamic": [
                {"name": name, "place": place, "why": syncs.SIZE, "shapes": sorted(map(list, sizes))}
                for (name, place), sizes in self.sized.items()
            ] + self._changing(),
            "compilations": self.compiled, "compilations_elsewhere": max(inside, 0), "per_step": self.per_step,
            "graph_breaks": [
                {"place": place, "reason": why, "count": count} for (place, why), count in self.logs.breaks.items()
            ],
            "recompilations": self.logs.recompiles, "events": self.events, "events_lost": self.lost,
        }  # fmt: skip

    def _changing(self) -> list[dict[str, Any]]:
        """Operators of one line whose shapes are one thing in some calls and another in others, step by step."""
        found = []
        for (name, place, phase), shapes in self.shapes.items():
            ranks = {tuple(map(len, one)) for one in shapes}
            steps = [row for key, row in self.rows.items() if (key[0], key[3], key[4]) == (name, place, phase)]
            # Layers of different widths share a line within every step; a size that changes is new in a later one.
            later = len({row.first_step for row in steps}) > 1
            if place and len(shapes) > 1 and len(ranks) == 1 and later:
                sizes = sorted({tuple(one[0]) for one in shapes if one})
                found.append(
                    {"name": name, "place": place, "why": "shapes change from step to step",
                     "shapes": list(map(list, sizes))[:20]}
                )  # fmt: skip
        return found

    def save(self) -> None:
        """Writes everything so far, in place of what was written before."""
        if os.getpid() != self.pid or not self.rows:
            return
        with self.lock:
            text = json.dumps(self.record(), default=str)
        path = self.folder / f"{writer.rank() or 0}-{self.pid}.json"
        path.with_suffix(".part").write_text(text, encoding="utf-8")
        path.with_suffix(".part").replace(path)
        self.saved = time.monotonic()
