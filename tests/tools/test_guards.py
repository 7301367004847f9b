"""Which tests hold on CUDA alone, and which code runs only there."""

from __future__ import annotations

import ast

import pytest

from tests.tools.test_module import module
from tools.code.guards import (
    availability_calls,
    cuda_flags,
    dotted,
    is_cuda_test,
    is_no_cuda_test,
    leaves,
    on_cuda_path,
)
from tools.code.module import Module


def asked(test: str, before: str = "") -> tuple[Module, ast.expr]:
    seen = module(f"import torch\n{before}if {test}:  # cuda\n    pass\n", "cuda")
    statement = list(seen.nodes(ast.If))[-1]
    return seen, statement.test


@pytest.mark.parametrize(
    "test",
    [
        "torch.cuda.is_available()",
        "torch.cuda.device_count() > 1",
        "torch.cuda.device_count()",
        "device == 'cuda'",
        "'cuda:0' == device",
        "device.type == 'cuda'",
        "'cuda' in device",
        "device.startswith('cuda')",
        "x.is_cuda",
        "torch.version.cuda is not None",
        "torch.cuda.is_available() and args.fast",
        "args.fast and x.is_cuda",
        "x.is_cuda or device == 'cuda'",
        "True if torch.cuda.is_available() else False",
    ],
)
def test_holds_on_cuda_alone(test: str) -> None:
    seen, expression = asked(test)
    assert is_cuda_test(seen, expression)
    assert not is_no_cuda_test(seen, expression)


@pytest.mark.parametrize(
    "test",
    [
        "x",
        "torch.cuda.is_available() or args.fast",
        "not torch.cuda.is_available()",
        "device != 'cuda'",
        "device == 'cpu'",
        "device in ('cpu', 'cuda')",
        "torch.accelerator.is_available()",
        "False if torch.cuda.is_available() else True",
        "1 if torch.cuda.is_available() else False",
        "0 < n < torch.cuda.device_count()",
        "name.startswith(('cuda', 'cpu'))",
    ],
)
def test_holds_elsewhere_too(test: str) -> None:
    seen, expression = asked(test)
    assert not is_cuda_test(seen, expression)


@pytest.mark.parametrize(
    ("test", "without"),
    [
        ("not torch.cuda.is_available()", True),
        ("device.type != 'cuda'", True),
        ("torch.cuda.device_count() == 0", True),
        ("not x.is_cuda or args.slow", True),
        ("torch.cuda.device_count() == 1", False),
        ("not x.is_cuda and args.slow", False),
        ("args.no_cuda", False),
    ],
)
def test_holds_wherever_cuda_is_absent(test: str, without: bool) -> None:
    seen, expression = asked(test)
    assert is_no_cuda_test(seen, expression) is without


def test_variables_that_hold_such_a_test() -> None:
    before = (
        "use_cuda = torch.cuda.is_available()\nargs.cuda = not args.cpu and torch.cuda.is_available()\n"
        "mixed_cuda = torch.cuda.is_available()\nmixed_cuda = True\n"
    )
    seen, _ = asked("x", before)
    assert cuda_flags(seen) == {"use_cuda", "args.cuda"}
    for test, holds in (("use_cuda", True), ("args.cuda", True), ("mixed_cuda", False), ("other.cuda", False)):
        seen, expression = asked(test, before)
        assert is_cuda_test(seen, expression) is holds
        assert not is_cuda_test(seen, expression, flags=False)


def test_calls_that_ask_for_availability() -> None:
    seen, expression = asked("torch.cuda.is_available() and (f() or torch.cuda.is_available())")
    assert len(availability_calls(seen, expression)) == 2


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("if torch.cuda.is_available():\n    HERE.cuda()\n", True),
        ("if torch.cuda.is_available():\n    pass\nelse:\n    HERE.cuda()\n", False),
        ("if not torch.cuda.is_available():\n    pass\nelse:\n    HERE.cuda()\n", True),
        ("if not torch.cuda.is_available():\n    raise SystemExit('no cuda')\nHERE.cuda()\n", True),
        ("if not torch.cuda.is_available():\n    print('no cuda')\nHERE.cuda()\n", False),
        ("if not torch.cuda.is_available():\n    sys.exit(1)\nwith f():\n    HERE.cuda()\n", True),
        ("HERE.cuda()\nif not torch.cuda.is_available():\n    raise SystemExit\n", False),
        ("assert torch.cuda.is_available()\nHERE.cuda()\n", True),
        ("def f():\n    assert x.is_cuda\n    HERE.cuda()\n", True),
        ("def f():\n    assert x.is_cuda\n\nHERE.cuda()\n", False),
        ("y = HERE.cuda() if torch.cuda.is_available() else x\n", True),
        ("y = x if torch.cuda.is_available() else HERE.cuda()\n", False),
        ("torch.cuda.is_available() and HERE.cuda()\n", True),
        ("not torch.cuda.is_available() or HERE.cuda()\n", True),
        ("HERE.cuda() and torch.cuda.is_available()\n", False),
        ("@skip_unless_cuda\ndef test_it():\n    HERE.cuda()\n", True),
        (
            "@pytest.mark.skipif(not torch.cuda.is_available())\nclass T:\n    def t(self):\n        HERE.cuda()\n",
            True,
        ),
        ("@pytest.mark.skipif(x, reason='slow')\ndef test_it():\n    HERE.cuda()\n", False),
        ("@click.option('--gpus', required=True)\ndef main(gpus):\n    HERE.cuda()\n", False),
        ("while torch.accelerator.is_available():\n    HERE.cuda()\n", False),
        ("if kind == DistributedType.MULTI_GPU:\n    HERE.cuda()\n", True),
        ("for i in range(n):\n    f(torch.cuda.get_device_properties(i), HERE)  # cuda\n", True),
        ("for i in range(n):\n    f(i, HERE)  # cuda\n", False),
        ("def cuda_device_count():\n    HERE.cuda()\n", True),
        ("def cuda_copy(x):\n    HERE.cuda()\n", False),
        ("def build():\n    import tensorrt as trt\n    HERE.cuda()\n", True),
        ("def build():\n    import tensorrt as trt\n\ndef other():\n    HERE.cuda()\n", False),
        ("if has():\n    from megatron.core import mpu\n\ndef other():\n    HERE.cuda()\n", True),
        ("try:\n    import tensorrt\nexcept ImportError:\n    tensorrt = None\nHERE.cuda()\n", False),
        ("if x.device.type == 'cpu':\n    f(HERE)  # cuda\n", True),
        ("if x.device.type == 'cpu':\n    pass\nelse:\n    f(HERE)  # cuda\n", False),
        ("if is_torch_xla_available():\n    f(HERE)  # cuda\n", True),
        ("if torch.backends.mps.is_available():\n    f(HERE)  # cuda\n", True),
        ("if IS_CUDA_SYSTEM or IS_ROCM_SYSTEM:\n    HERE.cuda()\n", True),
        ("if IS_CUDART:\n    HERE.cuda()\n", False),
        ("def _init_nvidia():\n    HERE.cuda()\n", True),
        ("def _is_ampere_or_later():\n    HERE.cuda()\n", True),
        ("class XLAStrategy(Strategy):\n    def f(self):\n        HERE.cuda()\n", True),
        ("class _CudaDefaultGeneratorWrapper:\n    def f(self):\n        HERE.cuda()\n", True),
        ("class CudaPrefetcher:\n    def f(self):\n        HERE.cuda()\n", False),
        ("if kind == XLA and is_torch_xla_available(gpu=True):\n    f(HERE)  # cuda\n", True),
        ("with cp.cuda.Device(0):\n    f(HERE)  # cuda\n", True),
        ("class DataParallel(torch.nn.DataParallel):\n    def f(self):\n        HERE.cuda()\n", True),
        ("if CUDAAccelerator.is_available():\n    HERE.cuda()\n", True),
        ("if bf16_cuda:\n    HERE.cuda()\n", True),
        ("def check_tensorrt():\n    HERE.cuda()\n", True),
        ("def get_torch_cuda_device_capability():\n    HERE.cuda()\n", True),
        ("if is_cpu_half:\n    f(HERE)  # cuda\n", True),
    ],
)
def test_runs_on_cuda_alone(text: str, only: bool) -> None:
    seen = module(f"import sys\nimport pytest\nimport torch\n{text}", "cuda", "HERE")
    here = next(node for node in seen.nodes(ast.Name) if node.id == "HERE")
    assert on_cuda_path(seen, here) is only


@pytest.mark.parametrize(
    ("statement", "ends"),
    [("return", True), ("raise E", True), ("sys.exit(1)", True), ("exit()", True), ("stop()", False), ("x = 1", False)],
)
def test_statements_that_end_a_block(statement: str, ends: bool) -> None:
    body = ast.parse(f"def f():\n    {statement}\n").body[0]
    assert isinstance(body, ast.FunctionDef)
    assert leaves(body.body[0]) is ends


@pytest.mark.parametrize(("text", "name"), [("a.b.c", "a.b.c"), ("a", "a"), ("a().b", None), ("a[0].b", None)])
def test_dotted_names(text: str, name: str | None) -> None:
    assert dotted(ast.parse(text, mode="eval").body) == name
