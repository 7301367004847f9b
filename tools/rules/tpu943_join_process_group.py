"""TPU943: torch_xla's process group."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, remove_keyword, spread
from tools.code.cuda_calls import imported
from tools.code.edits import Edit
from tools.code.module import Module, keyword, string
from tools.code.rewrite import device, spell
from tools.code.torch_xla import aside
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_INIT = ("torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group")
_DEFAULT = "torch.distributed.get_default_backend_for_device"
_ADDRESS = "init_method"
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class JoinProcessGroup(PythonRule):
    """``init_process_group("xla", init_method="xla://")`` makes torch_xla's group; so does ``pjrt://``.

    The backend becomes that of the device in use, ``tpu_dist`` on a TPU, and the address is left to the environment, where
    torchrun puts it.
    """

    ID = "TPU943"
    NAME = "join-process-group"
    FAMILY = "I"
    MESSAGE = "this makes torch_xla's process group"
    TRIGGERS = ("xla", "pjrt")
    REQUIRES = ("init_process_group",)
    PATTERN = r"[\"'](xla|pjrt)(://)?[\"']"
    COVERS = ("D21",)
    VALID = ("import torch.distributed as dist\ndist.init_process_group('gloo', init_method='env://')\n",)
    INVALID = (
        Invalid(
            "import torch\nimport torch.distributed as dist\n\ndist.init_process_group('xla', init_method='xla://')\n",
            f"import torch\nimport torch.distributed as dist\n\n{_TOP}\n"
            "dist.init_process_group(dist.get_default_backend_for_device(DEVICE_TYPE))\n",
        ),
        Invalid(
            "import torch\nimport torch.distributed as dist\n\ndist.init_process_group(backend='xla', world_size=n)\n",
            f"import torch\nimport torch.distributed as dist\n\n{_TOP}\n"
            "dist.init_process_group(backend=dist.get_default_backend_for_device(DEVICE_TYPE), world_size=n)\n",
        ),
        Invalid("import torch.distributed as dist\ndist.init_process_group('xla', **more)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields process groups of torch_xla."""
        for call in module.calls(*_INIT):
            backend = argument(call, "backend", 0)
            if string(backend) != "xla" or backend is None:
                continue
            if _optional(module, call) or aside(module, call):
                continue
            if spread(call) or len(call.args) > 1:
                note = "the backend of a TPU is tpu_dist, and the address env://"
                yield Match(*module.span(call), grade=Grade.ADVICE, note=note)
                continue
            name, edits = device(module, backend)
            change: list[Edit] = [module.replace(backend, f"{spell(module, _DEFAULT)}({name})"), *edits]
            address = keyword(call, _ADDRESS)
            if address is not None and (string(address.value) or "").startswith(("xla", "pjrt")):
                change.append(remove_keyword(module, call, _ADDRESS))
            yield Match(*module.span(call), fix=imported(module, change, _DEFAULT))


def _optional(module: Module, call: ast.Call) -> bool:
    """Whether a test around the call asks for torch_xla, so that the file does without it elsewhere."""
    tests = (parent.test for parent in module.ancestors(call) if isinstance(parent, ast.If | ast.IfExp))
    return any("xla" in module.text(test).lower() for test in tests)
