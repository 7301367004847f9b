"""Streams, events and ranges: work on a CPU is done when its call returns, so they only keep time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement


class Event:
    """A point in time."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.recorded: float | None = None

    def record(self, _stream: Any = None) -> None:
        """Takes the time."""
        self.recorded = time.perf_counter()

    def wait(self, _stream: Any = None) -> None:
        """Has nothing to wait for."""

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def query(self) -> bool:
        """Tells that the work before it is done."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Returns the milliseconds to another event."""
        if self.recorded is None or end.recorded is None:
            raise RuntimeError("both events must be recorded before calculating elapsed time")
        return (end.recorded - self.recorded) * 1000


class Stream:
    """A queue whose work is already done."""

    def __init__(self, device: Any = None, priority: int = 0, **_kwargs: Any) -> None:
        place = placement.read(device)
        self.device_index = placement.state.current if place is None else place
        self.priority, self.stream_id, self.cuda_stream = priority, 0, 0

    @property
    def device(self) -> Any:
        """The device it works on."""
        return placement.device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def wait_stream(self, _stream: Any) -> None:
        """Has nothing to wait for."""

    def wait_event(self, _event: Any) -> None:
        """Has nothing to wait for."""

    def query(self) -> bool:
        """Tells that all work is done."""
        return True

    def is_capturing(self) -> bool:
        """Tells that no graph is being captured."""
        return False

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one where none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_details: Any) -> None:
        return None


_DEFAULT = Stream.__new__(Stream)


def _default_stream(device: Any = None) -> Stream:
    _DEFAULT.__init__(device)  # type: ignore[misc]  # one object, so that streams compare equal
    return _DEFAULT


class StreamContext:
    """Enters a stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_details: Any) -> None:
        return None


@contextlib.contextmanager
def _range(*_args: Any, **_kwargs: Any) -> Iterator[None]:
    yield


def install(torch: Any) -> None:
    """Replaces the classes of torch.cuda and the general ones of torch."""
    cuda = torch.cuda
    for module in (cuda, cuda.streams):
        module.Event, module.Stream = Event, Stream
        module.ExternalStream = Stream
    torch.Event, torch.Stream = Event, Stream
    cuda.StreamContext = cuda.stream = StreamContext
    cuda.current_stream = cuda.default_stream = _default_stream
    cuda.set_stream = lambda stream: None  # noqa: ARG005  torch's signature
    accelerator = torch.accelerator
    accelerator.current_stream, accelerator.set_stream = _default_stream, cuda.set_stream
    nvtx = cuda.nvtx
    wrapping.answer(nvtx, {"mark": None, "range_push": 0, "range_pop": 0, "range_start": 0, "range_end": None})
    nvtx.range = _range
    for name in ("start", "stop"):
        wrapping.answer(cuda.profiler, {name: None})
    cuda.profiler.profile = _range
