"""A process group for the simulated device: tensors travel through the host, carried by gloo."""
# ruff: noqa: ARG002  torch.distributed passes options gloo has no use for

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.futures import Future

from torchtpu.simulator import runtime

# torch declares overloads of every collective that only its C++ side uses.
_ProcessGroup: Any = dist.ProcessGroup

_BACKENDS = ("tpu_dist", "tpu")
# Methods that move no data and may be traced.
_PLAIN = ("size", "rank", "getBackendName", "setGroupName")


def _finished(value: Any) -> Any:
    future: Future[Any] = Future()
    future.set_result(value)
    return _create_work_from_future(future)


def _to_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


def _sum_options(options: Any, kind: Any) -> tuple[Any, bool]:
    """Returns options gloo understands, and whether the sum must be divided afterwards."""
    made = kind()
    operation = dist.ReduceOp.SUM if options is None else options.reduceOp
    if options is not None and hasattr(made, "rootRank"):
        made.rootRank = options.rootRank
    average = operation == dist.ReduceOp.AVG
    made.reduceOp = dist.ReduceOp.SUM if average else operation
    return made, average


def _averaged(tensor: torch.Tensor, size: int) -> torch.Tensor:
    return tensor / size if tensor.is_floating_point() else tensor // size


class HostCarriedGroup(_ProcessGroup):  # type: ignore[misc]
    """Collectives on device tensors: copy to the host, run gloo there, copy back.

    Every operation is finished when it returns. Ranks may have different sizes where gloo allows.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._gloo: Any = dist.ProcessGroupGloo(store, rank, size, timeout)
        self._own_rank, self._own_size = rank, size
        self._given_name = ""

    def size(self) -> int:
        """Returns the number of ranks."""
        return self._own_size

    def rank(self) -> int:
        """Returns this process's rank in the group."""
        return self._own_rank

    def getBackendName(self) -> str:  # noqa: N802  torch calls it by this name
        """Returns the name torch_tpu's own backend has."""
        return "tpu_dist"

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Takes the name torch.distributed gives the group."""
        self._given_name = name

    @property
    def group_name(self) -> str:
        """Name torch.distributed gave the group."""
        return self._given_name

    @property
    def pg_name(self) -> str:
        """Name torch.distributed gave the group."""
        return self._given_name

    def _in_place(self, tensors: Sequence[torch.Tensor], run: Callable[[list[torch.Tensor]], Any]) -> Any:
        with torch.no_grad():
            copies = [_to_host(tensor) for tensor in tensors]
            run(copies)
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.detach().copy_(copy)
        return _finished(list(tensors))

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduces every tensor over the ranks, in place."""
        options, average = _sum_options(opts, dist.AllreduceOptions)

        def run(copies: list[torch.Tensor]) -> None:
            self._gloo.allreduce(copies, options).wait()
            if average:
                copies[:] = [_averaged(copy, self._own_size) for copy in copies]

        return self._in_place(tensors, run)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduces several tensors over the ranks, in place."""
        for tensor in tensors:
            self.allreduce([tensor], opts)
        return _finished(tensors)

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduces to one rank, in place."""
        options, average = _sum_options(opts, dist.ReduceOptions)

        def run(copies: list[torch.Tensor]) -> None:
            self._gloo.reduce(copies, options).wait()
            if average and options.rootRank == self._own_rank:
                copies[:] = [_averaged(copy, self._own_size) for copy in copies]

        return self._in_place(tensors, run)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Copies one rank's tensors to all."""
        options = dist.BroadcastOptions() if opts is None else opts
        return self._in_place(tensors, lambda copies: self._gloo.broadcast(copies, options).wait())

    def barrier(self, opts: Any = None) -> Any:
        """Waits for every rank."""
        self._gloo.barrier(dist.BarrierOptions()).wait()
        return _finished([])

    def _gathered(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        mine = _to_host(tensor)
        parts = [torch.empty_like(mine) for _ in range(self._own_size)]
        self._gloo.allgather([parts], [mine]).wait()
        return parts

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Collects every rank's tensor on every rank."""
        with torch.no_grad():
            for output, tensor in zip(outputs, inputs, strict=True):
                if len({part.shape for part in output}) > 1:
                    self._allgather_uneven(output, tensor)
                    continue
                for target, part in zip(output, self._gathered(tensor), strict=True):
                    target.detach().copy_(part)
        return _finished(outputs)

    def _allgather_uneven(self, output: list[torch.Tensor], tensor: torch.Tensor) -> None:
        for root, target in enumerate(output):
            part = _to_host(tensor if root == self._own_rank else target)
            options = dist.BroadcastOptions()
            options.rootRank = root
            self._gloo.broadcast([part], options).wait()
            target.detach().copy_(part)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        with torch.no_grad():
            flat = torch.cat([part.reshape(-1) for part in self._gathered(tensor)])
            output.detach().copy_(flat.reshape(output.shape))
        return _finished(output)

    def allgather_into_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Collects several tensors, each into one."""
        for output, tensor in zip(outputs, inputs, strict=True):
            self._allgather_base(output, tensor)
        return _finished(outputs)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Collects every rank's tensor on one rank."""
        options = dist.GatherOptions() if opts is None else opts
        with torch.no_grad():
            hosts = [[_to_host(part) for part in output] for output in outputs]
            self._gloo.gather(hosts, [_to_host(tensor) for tensor in inputs], options).wait()
            for output, host in zip(outputs, hosts, strict=True):
                for target, part in zip(output, host, strict=True):
                    target.detach().copy_(part)
        return _finished(outputs)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Hands one rank's tensors out, one to each."""
        options = dist.ScatterOptions() if opts is None else opts
        hosts = [[_to_host(part) for part in parts] for parts in inputs]
        return self._in_place(outputs, lambda copies: self._gloo.scatter(copies, hosts, options).wait())

    def _reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        options, average = _sum_options(opts, dist.AllreduceOptions)
        with torch.no_grad():
            whole = _to_host(tensor)
            self._gloo.allreduce([whole], options).wait()
            part = whole.reshape(self._own_size, -1)[self._own_rank].reshape(output.shape)
            output.detach().copy_(_averaged(part, self._own_size) if average else part)
        return _finished(output)

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Reduces lists of tensors and leaves each rank its own entry, whatever their sizes."""
        options, average = _sum_options(opts, dist.AllreduceOptions)
        with torch.no_grad():
            for output, parts in zip(outputs, inputs, strict=True):
                for rank, part in enumerate(parts):
                    copy = _to_host(part)
                    self._gloo.allreduce([copy], options).wait()
                    if rank == self._own_rank:
                        output.detach().copy_(_averaged(copy, self._own_size) if average else copy)
        return _finished(outputs)

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Reduces several tensors and leaves each rank its share."""
        for output, tensor in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, tensor, opts)
        return _finished(outputs)

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Any:
        """Exchanges slices of one tensor between all ranks."""
        with torch.no_grad():
            host = torch.empty(output.shape, dtype=output.dtype)
            self._gloo.alltoall_base(host, _to_host(tensor), output_split_sizes, input_split_sizes).wait()
            output.detach().copy_(host)
        return _finished(output)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Exchanges a list of tensors between all ranks."""
        with torch.no_grad():
            sent = torch.cat([_to_host(tensor).reshape(-1) for tensor in inputs])
            received = torch.empty(sum(out.numel() for out in outputs), dtype=sent.dtype)
            out_sizes = [out.numel() for out in outputs]
            in_sizes = [tensor.numel() for tensor in inputs]
            self._gloo.alltoall_base(received, sent, out_sizes, in_sizes).wait()
            for out, part in zip(outputs, torch.split(received, out_sizes), strict=True):
                out.detach().copy_(part.reshape(out.shape))
        return _finished(outputs)

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Any:
        """Sends tensors to one rank."""
        self._gloo.send([_to_host(tensor) for tensor in tensors], dst, tag).wait()
        return _finished([])

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Any:
        """Receives tensors from one rank."""
        return self._in_place(tensors, lambda copies: self._gloo.recv(copies, src, tag).wait())

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        """Receives tensors from whichever rank sends first."""
        return self._in_place(tensors, lambda copies: self._gloo.recv_anysource(copies, tag).wait())

    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base


def _break_graphs(group: type) -> None:
    """Keeps torch.compile from tracing into the collectives: the data leaves the device there."""
    disable: Any = torch.compiler.disable
    for name, method in list(vars(group).items()):
        if callable(method) and name not in _PLAIN and not name.startswith("__"):
            setattr(group, name, disable(method))


_break_graphs(HostCarriedGroup)


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> HostCarriedGroup:
    # An object collective may come before the first tensor on the device.
    runtime.start_runtime()
    return HostCarriedGroup(store, rank, size, timeout)


def register() -> None:
    """Makes ``tpu_dist`` and ``tpu``, registered by torch_tpu, create host-carried groups."""
    if not dist.is_available():
        return
    for name in _BACKENDS:
        plugin = dist.Backend._plugins.get(name.upper())
        if plugin is None:
            dist.Backend.register_backend(name, _create, devices=["tpu"])
        else:
            dist.Backend._plugins[name.upper()] = plugin._replace(creator_fn=_create)
