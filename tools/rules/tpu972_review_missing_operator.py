"""TPU972: operators that torch_tpu lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_CPU = "CPU copies of its input"
_WRITE = "the same in other operators"
_FUNCTIONS = {
    **dict.fromkeys("kthvalue mode renorm histogram hypot copysign heaviside nextafter i0 igamma igammac logaddexp2 "
                    "cholesky_inverse cholesky_solve ormqr frexp addbmm nonzero_static".split(), _CPU),
    "median": "quantile(0.5, interpolation='lower'), or CPU copies",
    "nanmedian": _CPU,
    "nansum": "x.nan_to_num(0.0).sum()",
    "nanmean": "x.nan_to_num(0.0).sum() / (~x.isnan()).sum()",
    "std_mean": "torch.var_mean(x), and its square root",
    "logaddexp": "torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))",
    "erfc": "1 - torch.erf(x)",
    "sinc": _WRITE,
    "logdet": _CPU,
    "slogdet": _CPU,
}  # fmt: skip
_NEURAL = {
    "mish": ("Mish", "x * torch.tanh(torch.nn.functional.softplus(x))"),
    "smooth_l1_loss": (
        "SmoothL1Loss",
        "torch.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta) of d = (a - b).abs()",
    ),
    "huber_loss": ("HuberLoss", "torch.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)) of d = (a - b).abs()"),
    "hardshrink": ("Hardshrink", "torch.where(x.abs() > lambd, x, 0.0)"),
    "softshrink": ("Softshrink", "torch.where(x.abs() > lambd, x - lambd * x.sign(), 0.0)"),
    "rrelu": ("RReLU", "leaky_relu, whose slope is not drawn"),
    "max_unpool1d": ("MaxUnpool1d", _CPU),
    "max_unpool2d": ("MaxUnpool2d", _CPU),
    "max_unpool3d": ("MaxUnpool3d", _CPU),
    "adaptive_max_pool3d": ("AdaptiveMaxPool3d", "max_pool3d with a fixed window"),
    "fractional_max_pool2d": ("FractionalMaxPool2d", "max_pool2d"),
    "fractional_max_pool3d": ("FractionalMaxPool3d", "max_pool3d"),
    "multi_margin_loss": ("MultiMarginLoss", _WRITE),
    "multilabel_margin_loss": ("MultiLabelMarginLoss", _WRITE),
    "ctc_loss": ("CTCLoss", _CPU),
}
_LINEAR = {
    **dict.fromkeys("cholesky_ex eig eigh lstsq slogdet ldl_factor ldl_solve householder_product".split(), _CPU),
}
_TABLE = {
    **{f"torch.{name}": advice for name, advice in _FUNCTIONS.items()},
    **{f"torch.nn.functional.{name}": advice for name, (_, advice) in _NEURAL.items()},
    **{f"torch.nn.{name}": advice for name, advice in _NEURAL.values()},
    **{f"torch.linalg.{name}": advice for name, advice in _LINEAR.items()},
    "torch.Tensor.chalf": "float32 or complex64",
}


class ReviewMissingOperator(PythonRule):
    """Operators that torch_tpu 0.2.0 answers with "is not implemented for TPU".

    The list was measured: PyTorch's own samples of every operator were run on the simulated device. Among them are
    ``smooth_l1_loss``, ``huber_loss``, ``mish``, ``median``, ``std_mean``, eigenvalues and least squares. The
    note says what computes the same.

    Transforms of data run on the host and are left. Reported only, and only where the operator is written out with its package; methods of tensors cannot be told from
    those of arrays. Solvers with an obvious copy to the CPU are TPU915's.
    """

    ID = "TPU972"
    NAME = "review-missing-operator"
    FAMILY = "L"
    GRADE = Grade.ADVICE
    MESSAGE = "torch_tpu 0.2.0 does not implement this operator"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = tuple(sorted({f"{name.rpartition('.')[2]}(" for name in _TABLE}))
    REQUIRES = (
        "torch",
        "|".join(
            [*(f"torch.{name}(" for name in _FUNCTIONS), *(f"linalg.{name}(" for name in _LINEAR)]
            + [f"{name}(" for pair in _NEURAL.items() for name in (pair[0], pair[1][0])]
        ),
    )
    COVERS = ("L2", "L5", "L6", "L1")
    VALID = (
        "import numpy as np\nimport torch\nm = np.median(x)\n",
        "import torch\nm = torch.mean(x)\n",
        "import torch\nif torch.cuda.is_available():\n    m = torch.median(x)\n",
        "import torch\nm = torch.median(x.cpu())\n",
        "import torch\ndef fit(n):\n    y = torch.zeros(n, device='cpu')\n    return torch.linalg.lstsq(a, y)\n",
        "import torch\nclass Rotate(BaseTransform):\n    def forward(self, data):\n        return torch.linalg.eigh(data.pos)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn as nn\nloss = nn.SmoothL1Loss(beta=0.1)\nm = torch.median(x)\n",
            None,
            count=2,
        ),
        Invalid("import torch.nn.functional as F\ny = F.mish(x)\n", None),
        Invalid("import torch\nw, v = torch.linalg.eigh(a)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of the operators and constructors of their modules."""
        for call in module.calls(*_TABLE):
            if on_cuda_path(module, call) or any(".cpu()" in module.text(value) for value in call.args):
                continue
            if any(_on_host(module, call, value) for value in call.args):
                continue
            if any(isinstance(a, ast.ClassDef) and _is_transform(module, a) for a in module.ancestors(call)):
                continue
            yield Match(*module.span(call), note=f"use {_TABLE[module.qualify(call.func) or '']}")


def _is_transform(module: Module, holder: ast.ClassDef) -> bool:
    """Whether a class is one of the transforms that a data set runs on the host."""
    return any(
        "Transform" in module.text(base).rpartition(".")[2] and "former" not in module.text(base)
        for base in holder.bases
    )


def _on_host(module: Module, call: ast.Call, value: ast.expr) -> bool:
    """Whether an argument is a variable that its function makes on the CPU."""
    function = module.function(call)
    if function is None or not isinstance(value, ast.Name):
        return False
    made = [
        s.value
        for s in ast.walk(function)
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in s.targets)
    ]
    return bool(made) and all(
        isinstance(m, ast.Call) and any(k.arg == "device" and string(k.value) == "cpu" for k in m.keywords)
        for m in made
    )
