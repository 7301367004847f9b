"""What surrounds the arithmetic: autograd machinery, control flow, data loading, devices, export."""
# ruff: noqa: D103  a case is named by what it does; F is its name everywhere

from typing import Any

import torch
from torch import nn
from torch.func import grad, hessian, jacrev, vmap
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from evals.conformance.bench import Bench


def higher_derivatives(bench: Bench) -> Any:
    data = bench.normal(5).requires_grad_()
    (first,) = torch.autograd.grad((data**3).sum(), data, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), data)

    def wave(x: torch.Tensor) -> torch.Tensor:
        return x.sin().square().sum()

    mapped = vmap(grad(wave))(bench.normal(3, 5))
    jacobian = jacrev(lambda x: x**2)(bench.normal(4))
    return first, second, mapped, jacobian, hessian(wave)(bench.normal(3))


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grads[0]


def custom_function_in_checkpoint(bench: Bench) -> Any:
    layer, data = bench.module(lambda: nn.Linear(5, 5)), bench.normal(4, 5).requires_grad_()
    out = checkpoint(lambda x: _Square.apply(layer(x)).relu(), data, use_reentrant=False)
    out.sum().backward()
    return data.grad, layer.weight.grad


def hooks(bench: Bench) -> Any:
    seen: list[int] = []
    layer = bench.module(lambda: nn.Linear(3, 3))
    layer.register_forward_hook(lambda *_: seen.append(1))
    layer.register_full_backward_hook(lambda *_: seen.append(2))
    layer(torch.ones(1, 3, device=bench.device)).sum().backward()
    return seen


def gradient_scaler(bench: Bench) -> Any:
    scaler = torch.amp.GradScaler(bench.device, init_scale=8.0)
    layer = bench.module(lambda: nn.Linear(3, 3))
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler.scale(layer(bench.normal(2, 3)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return layer.weight, scaler.get_scale()


def sparse_matrices(bench: Bench) -> Any:
    places, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    matrix = torch.sparse_coo_tensor(places, values, (2, 3)).to(bench.device)
    return torch.sparse.mm(matrix, bench.normal(3, 2)), matrix.to_dense()


def nested_tensors(bench: Bench) -> Any:
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, device=bench.device)
    return (nested * 2).values()


def exported_program(bench: Bench) -> Any:
    model = bench.module(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    data = torch.ones(2, 4, device=bench.device)
    return torch.export.export(model, (data,)).module()(data)


def stablehlo_export_is_there(bench: Bench) -> Any:
    if bench.is_reference:
        return [True]
    from torch_tpu._internal.export import export

    return [any("export" in name for name in dir(export))]


def loader_with_pinning(bench: Bench) -> Any:
    data = TensorDataset(bench.normal(8, 3).cpu())
    loader = DataLoader(data, batch_size=4, pin_memory=not bench.is_reference)
    return [batch[0].to(bench.device, non_blocking=True) for batch in loader]


def loader_with_workers(bench: Bench) -> Any:
    data = TensorDataset(bench.normal(8, 3).cpu())
    return [bench.on(batch[0]) for batch in DataLoader(data, batch_size=4, num_workers=2)]


def profiler(bench: Bench) -> Any:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if not bench.is_reference:
        activities.append(ProfilerActivity.PrivateUse1)
    with profile(activities=activities) as record:
        (bench.normal(4, 4) @ bench.normal(4, 4)).cpu()
    return [len(record.key_averages()) > 0]


def accelerator_interface(bench: Bench) -> Any:
    if bench.is_reference:
        return [True, "tpu", 1, 0, 0]
    accelerator = torch.accelerator
    accelerator.synchronize()
    accelerator.set_device_index(0)
    accelerator.empty_cache()
    current = accelerator.current_accelerator()
    assert current is not None
    return [
        accelerator.is_available(),
        current.type,
        accelerator.device_count(),
        accelerator.current_device_index(),
        accelerator.current_stream().device_index,
    ]


def streams_and_events(bench: Bench) -> Any:
    if bench.is_reference:
        return [torch.ones(3) + 1]
    stream = torch.Stream(device="tpu")
    event = torch.Event(device="tpu")
    with stream:
        data = torch.ones(3, device="tpu") + 1
        event.record()
    event.synchronize()
    torch.accelerator.synchronize()
    return [data]


def conditional(bench: Bench) -> Any:
    def branch(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

    return bench.compiled(branch)(bench.normal(4))


def dynamic_shapes(bench: Bench) -> Any:
    backend = "eager" if bench.is_reference else "tpu"
    run = torch.compile(lambda x: (x * 2).sum(0), backend=backend, dynamic=True)
    return [run(bench.normal(length, 4)) for length in (3, 5, 7)]
