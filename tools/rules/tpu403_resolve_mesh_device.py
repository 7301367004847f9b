"""TPU403: a device mesh or a sharded model laid out for CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, only_if
from tools.code.edits import Edit, Fix
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.older import is_for_older
from tools.code.rewrite import CURRENT, cuda_test, device_type, import_edits, spell
from tools.rules.base import Invalid, Match, PythonRule

_MESHES = frozenset({
    "torch.distributed.device_mesh.init_device_mesh",
    "torch.distributed.device_mesh.DeviceMesh",
    "torch.distributed.init_device_mesh",
    "torch.distributed.DeviceMesh",
    "torch.distributed.tensor.DeviceMesh",
    "torch.distributed.tensor.init_device_mesh",
    "torch.distributed._tensor.DeviceMesh",
    "torch.distributed._tensor.init_device_mesh",
})  # fmt: skip
_FSDP = frozenset({
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
})  # fmt: skip
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class ResolveMeshDevice(PythonRule):
    """``init_device_mesh("cuda", ...)``, ``DeviceMesh("cuda", ...)`` and FSDP's ``device_id=rank``.

    A mesh takes the resolved device type. FSDP's ``device_id`` keeps its CUDA index and elsewhere is the accelerator itself,
    since a process has one; without any it stays away.

    Not covered: meshes whose type is a variable; ``device_id`` that is a device already.
    """

    ID = "TPU403"
    NAME = "resolve-mesh-device"
    FAMILY = "D"
    MESSAGE = "the mesh or sharded model is laid out for CUDA devices"
    WHOLE_WORDS = True
    TRIGGERS = ("DeviceMesh", "init_device_mesh", "FSDP", "FullyShardedDataParallel", "device_id")
    REQUIRES = ("distributed",)
    PATTERN = r"device_id\s*=|[\"']cuda[\"']"
    COVERS = ("D15", "D16")
    VALID = (
        "from torch.distributed.device_mesh import init_device_mesh\nmesh = init_device_mesh(device.type, (2,))\n",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model, device_id=device)\n",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.distributed.device_mesh import init_device_mesh\n\n"
            "mesh = init_device_mesh('cuda', (2, 4), mesh_dim_names=('dp', 'tp'))\n",
            f"import torch\nfrom torch.distributed.device_mesh import init_device_mesh\n\n{_TOP}\n"
            "mesh = init_device_mesh(DEVICE_TYPE, (2, 4), mesh_dim_names=('dp', 'tp'))\n",
        ),
        Invalid(
            "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
            "model = FSDP(model, device_id=local_rank)\n",
            "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
            "model = FSDP(model, device_id=local_rank if torch.cuda.is_available() else "
            "torch.accelerator.current_accelerator())\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields meshes and sharded models laid out for CUDA, off the CUDA-only path."""
        for call in module.calls(*_MESHES, *_FSDP):
            if on_cuda_path(module, call):
                continue
            meshes = module.qualify(call.func) in _MESHES
            edits = _mesh(module, call) if meshes else _sharded(module, call)
            if edits:
                yield Match(*module.span(call), fix=Fix(tuple(edits)))


def _mesh(module: Module, call: ast.Call) -> list[Edit]:
    literal = argument(call, "device_type", 0)
    if literal is None or string(literal) != "cuda":
        return []
    name, edits = device_type(module, call)
    return [module.replace(literal, name), *edits]


def _sharded(module: Module, call: ast.Call) -> list[Edit]:
    given = argument(call, "device_id")
    if given is None or not _is_index(module, given):
        return []
    if is_for_older(module):
        name, edits = device_type(module, call)
        return [only_if(module, call, given, cuda_test(module), f"{spell(module, 'torch.device')}({name})"), *edits]
    return [only_if(module, call, given, cuda_test(module), f"{spell(module, CURRENT)}()"), *import_edits(module)]


def _is_index(module: Module, value: ast.expr) -> bool:
    """Whether a value is evidently an index and not a device."""
    if isinstance(value, ast.IfExp) and is_cuda_test(module, value.test):
        return False
    if isinstance(value, ast.Call):
        return (module.qualify(value.func) or "").endswith(".current_device")
    text = module.text(value)
    return text.isdigit() or text.endswith(("rank", "gpu")) or text.startswith("int(")
