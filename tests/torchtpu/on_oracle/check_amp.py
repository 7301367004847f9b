"""Automatic mixed precision as on CUDA: autocast computes in half precision, the scaler scales."""

import pytest
import torch
from torch import nn
from torch.amp import custom_bwd, custom_fwd

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).cuda()

CONTEXTS = {
    "torch.autocast": (lambda: torch.autocast("cuda"), torch.float16),
    "torch.autocast(device_type=)": (lambda: torch.autocast(device_type="cuda", dtype=torch.bfloat16), torch.bfloat16),
    "torch.amp.autocast": (lambda: torch.amp.autocast("cuda"), torch.float16),
    "torch.cuda.amp.autocast": (lambda: torch.cuda.amp.autocast(), torch.float16),
    "torch.cuda.amp.autocast(dtype=)": (lambda: torch.cuda.amp.autocast(dtype=torch.bfloat16), torch.bfloat16),
    "the tensor's device": (lambda: torch.autocast(X.device.type), torch.float16),
    "disabled": (lambda: torch.cuda.amp.autocast(enabled=False), torch.float32),
    "disabled inside": (lambda: torch.autocast("cuda", enabled=False), torch.float32),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_autocast(name):
    context, dtype = CONTEXTS[name]
    assert not torch.is_autocast_enabled()
    with context():
        assert (X @ X).dtype is dtype
        assert torch.is_autocast_enabled() is (dtype is not torch.float32)
        assert torch.is_autocast_enabled("cuda") is (dtype is not torch.float32)
    assert (X @ X).dtype is torch.float32


def test_autocast_as_decorator_and_its_dtype():
    @torch.autocast("cuda", dtype=torch.bfloat16)
    def product():
        return X @ X, torch.get_autocast_gpu_dtype(), torch.get_autocast_dtype("cuda")

    made, dtype, same = product()
    assert made.dtype is torch.bfloat16
    assert torch.get_autocast_gpu_dtype() is torch.float16
    assert dtype is same


def test_custom_function():
    seen = {}

    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda", cast_inputs=torch.float16)
        def forward(ctx, x):
            seen["dtype"], seen["autocast"] = x.dtype, torch.is_autocast_enabled("cuda")
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            return grad * 2

    x = X.clone().requires_grad_()
    with torch.autocast("cuda"):
        Double.apply(x).float().sum().backward()
    assert seen == {"dtype": torch.float16, "autocast": False}
    assert x.grad.unique().tolist() == [2]


@pytest.mark.parametrize("make", [torch.cuda.amp.GradScaler, lambda **kw: torch.amp.GradScaler("cuda", **kw)])
def test_scaler(make):
    scaler = make(init_scale=1024.0, growth_interval=2)
    assert scaler.is_enabled()
    weight = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def step(factor):
        optimizer.zero_grad()
        loss = (weight * factor).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        gradient = weight.grad.clone()
        torch.nn.utils.clip_grad_norm_([weight], 1e9)
        scaler.step(optimizer)
        scaler.update()
        return gradient

    assert step(0.25).tolist() == [0.25, 0.25]
    assert weight.tolist() == [0.75, 0.75]
    step(float("inf"))
    assert weight.tolist() == [0.75, 0.75]
    assert scaler.get_scale() == 512
    step(0.0)
    step(0.0)
    assert scaler.get_scale() == 1024
    assert make(enabled=False).scale(weight.sum()) == weight.sum()
    assert scaler.state_dict()["scale"] == 1024


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("option", [{}, {"fused": True}, {"foreach": True}])
def test_optimizers_under_a_scaler(kind, option):
    torch.manual_seed(0)
    model = nn.Linear(4, 4).cuda()
    plain = nn.Linear(4, 4)
    plain.load_state_dict(model.state_dict())
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    optimizer, reference = kind(model.parameters(), lr=0.1, **option), kind(plain.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        reference.zero_grad()
        scaler.scale(model(X).pow(2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        plain(X.cpu()).pow(2).mean().backward()
        reference.step()
    torch.testing.assert_close(model.weight.detach().cpu(), plain.weight.detach())


def test_half_modules():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()).cuda().half()
    made = model(X.half())
    assert made.dtype is torch.float16
    assert made.is_cuda
    made.float().sum().backward()
    assert model[0].weight.grad.dtype is torch.float16
