"""With TPU numerics, products are those of bfloat16 operands and sums stay float32."""

import pytest
import torch
import torch.nn.functional as F


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rounded(data):
    return data.bfloat16().float()


def same(actual, expected):
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)


A, B, C = normal(12, 16), normal(16, 10, seed=1), normal(12, 10, seed=2)
BATCH_A, BATCH_B = normal(3, 4, 16), normal(3, 16, 5, seed=1)
IMAGE, KERNEL, BIAS = normal(2, 3, 8, 8), normal(4, 3, 3, 3, seed=1), normal(4, seed=2)

PRODUCTS = {
    "mm": (torch.mm, (A, B), (0, 1)),
    "matmul": (torch.matmul, (BATCH_A, B), (0, 1)),
    "bmm": (torch.bmm, (BATCH_A, BATCH_B), (0, 1)),
    "addmm": (torch.addmm, (C, A, B), (1, 2)),
    "baddbmm": (torch.baddbmm, (normal(3, 4, 5, seed=4), BATCH_A, BATCH_B), (1, 2)),
    "mv": (torch.mv, (A, B[:, 0]), (0, 1)),
    "dot": (torch.dot, (A[0], B[:, 1]), (0, 1)),
    "linear": (F.linear, (A, B.t().contiguous(), normal(10)), (0, 1)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (BATCH_A, BATCH_B), (0, 1)),
    "conv2d": (F.conv2d, (IMAGE, KERNEL, BIAS), (0, 1)),
    "conv_transpose2d": (F.conv_transpose2d, (normal(2, 4, 5, 5), KERNEL), (0, 1)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_operands_are_rounded_and_nothing_else(name, compiled):
    function, arguments, matrices = PRODUCTS[name]
    expected = function(*(rounded(a) if i in matrices else a for i, a in enumerate(arguments)))
    exact = function(*arguments)
    run = torch.compile(function) if compiled else function
    actual = run(*(argument.to("tpu") for argument in arguments)).cpu()
    same(actual, expected)
    assert (actual - exact).abs().max() > 1e-4


@pytest.mark.parametrize("precision", ["high", "highest"])
def test_asking_for_precision_keeps_float32(precision):
    torch.set_float32_matmul_precision(precision)
    try:
        same(A.to("tpu") @ B.to("tpu"), A @ B)
    finally:
        torch.set_float32_matmul_precision("medium")
    same(A.to("tpu") @ B.to("tpu"), rounded(A) @ rounded(B))


def test_precision_context():
    with torch.tpu.precision(torch.tpu.Precision.HIGHEST):
        same(A.to("tpu") @ B.to("tpu"), A @ B)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_are_left_alone(dtype):
    left, right = A.to(dtype), B.to(dtype)
    torch.testing.assert_close((left.to("tpu") @ right.to("tpu")).cpu(), left @ right)


@pytest.mark.parametrize("layer", ["linear", "conv"])
def test_bias_gradient_is_not_rounded(layer):
    build = {"linear": lambda: torch.nn.Linear(16, 8), "conv": lambda: torch.nn.Conv2d(3, 4, 3)}
    data = A if layer == "linear" else IMAGE
    torch.manual_seed(0)
    model = build[layer]().to("tpu")
    output = model(data.to("tpu"))
    weight = normal(*output.shape, seed=9)
    (output * weight.to("tpu")).sum().backward()
    axes = [axis for axis in range(weight.dim()) if axis != 1]
    same(model.bias.grad, weight.sum(axes))
    if layer == "linear":
        same(model.weight.grad, rounded(weight).t() @ rounded(data))


def test_grouped_products_follow():
    experts = normal(2, 16, 5)
    offsets = torch.tensor([5, 12], dtype=torch.int32, device="tpu")
    actual = torch._grouped_mm(A.to("tpu"), experts.to("tpu"), offsets)
    a, e = rounded(A), rounded(experts)
    same(actual, torch.cat([a[:5] @ e[0], a[5:] @ e[1]]))


def test_out_argument():
    out = torch.empty(12, 10, device="tpu")
    torch.mm(A.to("tpu"), B.to("tpu"), out=out)
    same(out, rounded(A) @ rounded(B))


def test_a_saved_tensor_can_be_written(tmp_path):
    result = A.to("tpu") @ B.to("tpu")
    torch.save({"result": result}, tmp_path / "file.pt")
    same(torch.load(tmp_path / "file.pt")["result"], rounded(A) @ rounded(B))
