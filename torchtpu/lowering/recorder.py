"""Records the operators of one step on the device: which, on which tensors, and from where."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from torchtpu.lowering import stacks
from torchtpu.lowering.fakes import DEVICE, FakeDevice
from torchtpu.lowering.regions import REGIONS
from torchtpu.lowering.values import encode

FORMAT = 1
GRADIENT = "gradient of "


class StepRecorder:
    """Listens to a fake device and keeps what one step does.

    A tensor that the step uses and did not make is an input of it. What it changes of them, and
    what it made and is still alive at its end, are its outputs.
    """

    def __init__(self) -> None:
        self.device = FakeDevice(self._operator, self._read)
        self.recording = False
        self._clear()

    def _clear(self) -> None:
        self.places = stacks.Stacks()
        self.numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.by_id: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.alive: dict[int, weakref.ref[Any]] = {}
        self.inputs: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []
        self.reads: list[dict[str, Any]] = []
        self.count = 0
        self.forward_of: dict[int, int] = {}
        self.region_of: dict[int, int | None] = {}

    def start(self) -> None:
        """Begins to record; what was recorded before is forgotten."""
        self._clear()
        self.recording = True

    def stop(self, names: dict[int, str] | None = None, *, keep_gradients: bool = False) -> dict[str, Any]:
        """Ends the recording.

        Args:
            names: Names of tensors by their ``id``.
            keep_gradients: Gradients are results also where the next step would throw them away.

        Returns:
            The step, as JSON.
        """
        self.recording = False
        names = names or {}
        for number, entry in enumerate(self.inputs):
            named = self._name(number_of(entry), names)
            entry["name"] = named or (f"from the host {number}" if entry["from_host"] else f"input {number}")
        known = {entry["tensor"] for entry in self.inputs}
        made = [n for n, ref in self.alive.items() if n not in known and ref() is not None]
        if not keep_gradients and not any(entry["name"].startswith(GRADIENT) for entry in self.inputs):
            # The next step throws them away before it uses any: they do not outlive this one.
            made = [n for n in made if not self._name(n, names).startswith(GRADIENT)]
        return {
            "format": FORMAT,
            "inputs": self.inputs,
            "operators": self.operators,
            "kept": made,
            "stacks": self.places.stacks,
            "reads": self.reads,
        }

    def _name(self, number: int, names: dict[int, str]) -> str:
        tensor = self.alive[number]()
        return names.get(id(tensor), "") if tensor is not None else ""

    def _number(self, tensor: Any) -> int | None:
        found = self.by_id.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _new(self, tensor: Any) -> int:
        number = self.count
        self.count += 1
        reference = weakref.ref(tensor)
        self.by_id[id(tensor)] = (reference, number)
        self.alive[number] = reference
        return number

    def _tensor(self, tensor: torch.Tensor) -> Any:
        number = self._number(tensor)
        if number is None:
            if not isinstance(tensor, FakeTensor) and tensor.dim() == 0 and not tensor.requires_grad:
                # A number in a tensor on the CPU, which TorchTPU takes into the program as it is.
                return {"scalar": [encode(tensor.item(), self._tensor), str(tensor.dtype).removeprefix("torch.")]}
            number = self._new(tensor)
            self.inputs.append({"tensor": number, **describe(tensor), "from_host": not isinstance(tensor, FakeTensor)})
        return {"tensor": number}

    def _operator(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if not self.recording or func.namespace == "prim":
            return
        entry: dict[str, Any] = {"op": str(func)}
        if func is torch.ops.aten._to_copy.default and not isinstance(args[0], FakeTensor):
            # A batch that arrives from the host is an input of the step.
            self.inputs.append({"tensor": self._new(result), **describe(result), "from_host": True})
            return
        entry["args"] = encode(list(args), self._tensor)
        entry["kwargs"] = {name: encode(value, self._tensor) for name, value in kwargs.items()}
        leaves = pytree.tree_leaves(result)
        entry["results"] = [self._result(leaf) for leaf in leaves]
        entry["shapes"] = [describe(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self._place(entry)
        self.operators.append(entry)

    def _result(self, leaf: Any) -> int | None:
        if not isinstance(leaf, torch.Tensor):
            return None
        number = self._number(leaf)
        return self._new(leaf) if number is None else number

    def _place(self, entry: dict[str, Any]) -> None:
        place = self.places.here()
        node = stacks.backward_node()
        entry["stack"] = place
        if node is not None:
            entry["phase"], entry["node"] = "backward", node[0]
            entry["forward_stack"] = self.forward_of.get(node[1])
            entry["region"] = self.region_of.get(node[1])
        elif stacks.is_optimizer(self.places.stacks[place]):
            entry["phase"] = "optimizer"
        else:
            entry["phase"] = "forward"
            entry["region"] = REGIONS.current
            if torch.is_grad_enabled():
                self.forward_of.setdefault(stacks.sequence(), place)
                self.region_of.setdefault(stacks.sequence(), REGIONS.current)

    def _read(self, operator: str) -> None:
        if self.recording:
            self.reads.append({"op": operator, "stack": self.places.here()})


def number_of(entry: dict[str, Any]) -> int:
    """Returns the number of the tensor that an input is."""
    return int(entry["tensor"])


def describe(tensor: torch.Tensor) -> dict[str, Any]:
    """Returns shape, strides and type of a tensor."""
    return {"shape": list(tensor.shape), "stride": list(tensor.stride()), "dtype": str(tensor.dtype)[6:]}


def on_device(tensor: torch.Tensor) -> bool:
    """Says whether a tensor is one of the fake device's."""
    return isinstance(tensor, FakeTensor) and tensor.device.type == DEVICE
