"""torch.cuda, torch.accelerator and torch.backends answer as with one CUDA device."""

import time

import pytest
import torch
from torch import nn


def test_queries():
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    assert torch.cuda.get_device_name(0)
    assert torch.cuda.get_device_capability() == (8, 0)
    properties = torch.cuda.get_device_properties("cuda")
    assert properties.total_memory > 2**30
    assert properties.multi_processor_count > 0
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.memory_allocated() > 0
    assert torch.cuda.max_memory_allocated() > 0
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 0
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    assert torch.version.cuda
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cuda.is_built()


def test_calls_with_nothing_to_do():
    torch.cuda.init()
    torch.cuda.set_device(0)
    torch.cuda.set_device("cuda:0")
    torch.cuda.set_device(torch.device("cuda", 0))
    torch.cuda.synchronize()
    torch.cuda.synchronize(device="cuda:0")
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    torch.cuda.reset_peak_memory_stats(0)
    torch.cuda.set_per_process_memory_fraction(0.5, 0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("b"), torch.cuda.device(0), torch.cuda.device_of(torch.ones(1)):
        pass


def test_current_device_of_a_rank(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert torch.cuda.device_count() == 4
    torch.cuda.set_device(2)
    try:
        assert torch.ones(1, device="cuda").device == torch.device("cuda:2")
        assert torch.ones(1).cuda().get_device() == 2
        with torch.cuda.device(1):
            assert torch.cuda.current_device() == 1
        assert torch.cuda.current_device() == 2
    finally:
        torch.cuda.set_device(0)


def test_accelerator():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.accelerator.device_count() == 1
    torch.accelerator.synchronize()
    assert torch.get_device_module("cuda") is torch.cuda


def test_events_and_streams():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        start.record()
        time.sleep(0.01)
        end.record(stream)
    torch.cuda.current_stream().wait_stream(stream)
    end.synchronize()
    assert end.query()
    assert 10 <= start.elapsed_time(end) < 10_000
    torch.ones(1).cuda().record_stream(stream)
    assert stream.record_event().query()
    with pytest.raises(RuntimeError, match="recorded"):
        torch.cuda.Event().elapsed_time(end)


def test_seeds_for_cuda_alone_move_nothing_and_states_are_the_cpus():
    torch.manual_seed(3)
    expected = torch.rand(2), torch.rand(2)
    torch.manual_seed(3)
    first = torch.rand(2, device="cuda")
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    second = torch.rand(2)
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])
    state = torch.cuda.get_rng_state()
    drawn = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="cuda"), drawn)
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8))


def test_checkpointed_dropout_draws_the_same_again():
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(4, 8, device="cuda", requires_grad=True)
    block = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).cuda()
    grads = []
    for again in (False, True):
        torch.manual_seed(0)
        x.grad = None
        y = checkpoint(block, x, use_reentrant=False) if again else block(x)
        y.pow(2).sum().backward()
        grads.append(x.grad.clone())
    assert torch.equal(*grads)


def test_data_parallel_on_one_device():
    model = nn.DataParallel(nn.Linear(2, 2).cuda())
    assert model(torch.ones(4, 2)).is_cuda
    assert model(torch.ones(4, 2).cuda()).shape == (4, 2)
    assert next(model.parameters()).is_cuda
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[0])(torch.ones(4, 2).cuda())


def test_what_cannot_be_imitated_is_reported(reports):
    with pytest.raises(RuntimeError, match="cannot be imitated"):
        torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="cannot be imitated"), torch.cuda.graph(None):
        pass
    layer = nn.Linear(1, 1).cuda()
    assert torch.cuda.make_graphed_callables(layer, (torch.ones(1).cuda(),)) is layer
    nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[0, 1])(torch.ones(4, 2).cuda())
    told = [(event["kind"], event["call"]) for event in reports()]
    assert told == [
        ("oracle", "torch.cuda.CUDAGraph"),
        ("oracle", "torch.cuda.graph"),
        ("oracle", "torch.nn.DataParallel"),
    ]


def test_compiled_cuda_code_is_reported(reports):
    from torch.utils import cpp_extension

    with pytest.raises(RuntimeError, match="cannot be imitated"):
        cpp_extension.CUDAExtension("kernels", ["kernels.cu"])
    assert [event["call"] for event in reports()] == ["torch.utils.cpp_extension.CUDAExtension"]


def test_low_level_calls_take_the_cpu_too():
    made = torch.ops.aten.zeros([2], device=torch.device("cuda:0"))
    assert made.tolist() == [0, 0]
    assert torch.Tensor([1, 2]).cuda().sum() == 3


def test_attention_with_a_backend_of_cuda_alone():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 4, 8, device="cuda")
    expected = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            torch.testing.assert_close(torch.nn.functional.scaled_dot_product_attention(q, q, q), expected)
    with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=False, enable_mem_efficient=True):
        torch.testing.assert_close(torch.nn.functional.scaled_dot_product_attention(q, q, q), expected)


CLASSES = [
    *("CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream", "StreamContext", "device"),
    *("CUDAPluggableAllocator", "FloatTensor", "device_of", "graph", "AcceleratorError", "FloatStorage"),
]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_stays_a_class(name):
    # Annotations such as `torch.cuda.CUDAGraph | None` and `isinstance` take nothing else.
    kind = getattr(torch.cuda, name)
    assert isinstance(kind, type)
    assert kind | None
    assert not isinstance(1, kind)
