"""What tensors say of their device, and which moves copy."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

CUDA = torch.device("cuda:0")

ON_CUDA = {
    "cuda": lambda x: x.cuda(),
    "cuda(0)": lambda x: x.cuda(0),
    "cuda(device)": lambda x: x.cuda(torch.device("cuda"), non_blocking=True),
    "cuda(device=)": lambda x: x.cuda(device="cuda:0"),
    "to(name)": lambda x: x.to("cuda"),
    "to(index)": lambda x: x.to(0),
    "to(numbered)": lambda x: x.to("cuda:0"),
    "to(device)": lambda x: x.to(torch.device("cuda", 0)),
    "to(device=)": lambda x: x.to(device="cuda", non_blocking=True),
    "to(device, dtype)": lambda x: x.to("cuda", torch.float64),
    "to(dtype=, device=)": lambda x: x.to(dtype=torch.float32, device=torch.device("cuda")),
    "to(other)": lambda x: x.to(torch.ones(1, device="cuda")),
    "type(name)": lambda x: x.type("torch.cuda.FloatTensor"),
    "type(class)": lambda x: x.type(torch.cuda.FloatTensor),
    "pinned": lambda x: x.pin_memory().cuda(non_blocking=True),
    "as_tensor": lambda x: torch.as_tensor(x, device="cuda"),
    "contiguous format": lambda x: x.to("cuda", memory_format=torch.contiguous_format),
}


@pytest.mark.parametrize("name", ON_CUDA)
def test_a_move_copies_and_says_cuda(name):
    x = torch.arange(6.0)
    y = ON_CUDA[name](x)
    assert y.device == CUDA
    assert y.device.type == "cuda"
    assert y.is_cuda
    assert not y.is_cpu
    assert y.get_device() == 0
    assert not x.is_cuda
    assert x.device == torch.device("cpu")
    assert x.get_device() == -1
    assert y.tolist() == x.tolist()
    y.add_(1)
    assert x[0] == 0


@pytest.mark.parametrize("back", [lambda y: y.cpu(), lambda y: y.to("cpu"), lambda y: y.to(device=torch.device("cpu"))])
def test_a_snapshot_on_the_cpu_stays_as_it_was(back):
    parameter = nn.Parameter(torch.ones(3, device="cuda"))
    snapshot = back(parameter.detach())
    with torch.no_grad():
        parameter.mul_(2)
    assert snapshot.tolist() == [1, 1, 1]
    assert not snapshot.is_cuda
    computed = parameter * 3
    again = back(computed)
    assert again is not computed
    assert again.device.type == "cpu"


def test_what_is_there_already_is_returned_itself():
    y = torch.ones(2, device="cuda")
    assert y.cuda() is y
    assert y.to("cuda") is y
    assert y.to(y.device) is y
    x = torch.ones(2)
    assert x.cpu() is x
    assert x.to("cpu") is x


def test_leaf_stays_a_leaf_where_nothing_moves():
    w = torch.randn(3, device="cuda", requires_grad=True)
    assert w.cuda().is_leaf
    assert w.is_leaf
    v = torch.randn(3, requires_grad=True)
    moved = v.cuda()
    assert not moved.is_leaf
    moved.sum().backward()
    assert v.grad.tolist() == [1, 1, 1]
    assert v.device.type == "cpu"


FACTORIES = {
    "zeros": lambda d: torch.zeros(2, device=d),
    "tensor": lambda d: torch.tensor([1.0], device=d),
    "as_tensor": lambda d: torch.as_tensor([1.0], device=d),
    "as_tensor positional": lambda d: torch.as_tensor([1.0], torch.float32, d),
    "asarray": lambda d: torch.asarray([1.0], device=d),
    "arange": lambda d: torch.arange(3, device=d),
    "randn": lambda d: torch.randn(2, 2, device=d),
    "randperm": lambda d: torch.randperm(4, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "full": lambda d: torch.full((2,), 3.0, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "empty_strided": lambda d: torch.empty_strided((2,), (1,), device=d),
    "zeros_like": lambda d: torch.zeros_like(torch.ones(2), device=d),
    "new_zeros": lambda d: torch.ones(2).new_zeros(2, device=d),
    "new_tensor": lambda d: torch.ones(2).new_tensor([1], device=d),
    "tril_indices": lambda d: torch.tril_indices(3, 3, device=d),
    "hann_window": lambda d: torch.hann_window(4, device=d),
    "fftfreq": lambda d: torch.fft.fftfreq(4, device=d),
    "normal": lambda d: torch.normal(0.0, 1.0, (2,), device=d),
    "generator": lambda d: torch.rand(2, device=d, generator=torch.Generator(device=d).manual_seed(1)),
    "parameter": lambda d: nn.Linear(2, 2, device=d).weight,
    "buffer": lambda d: nn.BatchNorm1d(2, device=d).running_mean,
    "sparse": lambda d: torch.sparse_coo_tensor([[0]], [1.0], (2,), device=d),
}


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), 0])
@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name, device):
    made = FACTORIES[name](device)
    assert made.device == CUDA
    assert made.is_cuda
    assert not FACTORIES[name]("cpu").is_cuda
    assert not FACTORIES[name](None).is_cuda


def test_results_say_where_a_cuda_program_computes():
    x = torch.ones(2, 2).cuda()
    assert (x @ x).is_cuda
    assert x[0].is_cuda
    assert x.detach().is_cuda
    assert x.data.is_cuda
    assert x.float().is_cuda
    assert torch.zeros_like(x).device == x.device
    assert x.new_zeros(3).is_cuda
    host = torch.ones(2, 2)
    assert not host[0].is_cuda
    assert not host.detach().is_cuda
    assert not host.clone().is_cuda
    assert not torch.zeros_like(host).is_cuda


def test_modules_move_with_all_they_hold():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    model[0].weight.requires_grad_(True)
    tied = model[0].weight
    assert not next(model.parameters()).is_cuda
    for move in (lambda: model.cuda(), lambda: model.cuda(0), lambda: model.to("cuda"), lambda: model.to(0)):
        assert move() is model
        assert {p.device for p in model.parameters()} == {CUDA}
        assert {b.device for b in model.buffers()} == {CUDA}
        assert model[0].weight is tied
        model.cpu()
        assert {p.device.type for p in model.parameters()} == {"cpu"}
    model.to(torch.device("cuda"), torch.float64)
    assert model[0].weight.dtype is torch.float64
    assert nn.Linear(2, 2).to_empty(device="cuda").weight.is_cuda


def test_gradients_and_optimizer_state():
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(torch.ones(3, 2).cuda()).sum().backward()
    assert model.weight.grad.is_cuda
    optimizer.step()
    assert optimizer.state[model.weight]["exp_avg"].is_cuda


def test_default_device():
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda
        assert nn.Linear(1, 1).weight.is_cuda
        assert not torch.zeros(1, device="cpu").is_cuda
    assert not torch.zeros(1).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(1).is_cuda
        assert torch.tensor([1.0]).is_cuda
        assert torch.get_default_device().type == "cuda"
    finally:
        torch.set_default_device(None)
    assert not torch.zeros(1).is_cuda
    assert torch.get_default_device().type == "cpu"


def test_default_tensor_type():
    try:
        for kind in ("torch.cuda.DoubleTensor", torch.cuda.DoubleTensor):
            torch.set_default_tensor_type(kind)
            made = torch.ones(2)
            assert (made.is_cuda, made.dtype) == (True, torch.float64)
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    made = torch.ones(2)
    assert (made.is_cuda, made.dtype) == (False, torch.float32)


def test_legacy_types():
    assert torch.cuda.FloatTensor([1, 2]).is_cuda
    assert torch.cuda.LongTensor(2, 3).zero_().shape == (2, 3)
    assert isinstance(torch.ones(1).cuda(), torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(1).cuda(), torch.cuda.HalfTensor)
    assert torch.ones(1).cuda().type() == "torch.cuda.FloatTensor"
    assert torch.ones(1).type() == "torch.FloatTensor"


def test_device_objects():
    assert torch.device(0) == CUDA
    assert torch.device("cuda").type == "cuda"
    assert torch.device("cuda").index is None
    assert torch.device("cuda", 1).index == 1
    assert isinstance(torch.device("cpu"), torch.device)
    assert not isinstance("cuda", torch.device)
    assert pickle.loads(pickle.dumps(CUDA)) == CUDA
    assert copy.deepcopy(CUDA) == CUDA
    assert {CUDA: 1}[torch.device(0)] == 1
    assert torch.device | None


def test_checkpoints(tmp_path):
    model = nn.Linear(2, 2).cuda()
    path = tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    assert b"_torchtpu_place" not in path.read_bytes()
    for where, on_cuda in (
        (None, True),
        ("cuda", True),
        ("cuda:0", True),
        (torch.device("cuda"), True),
        ("cpu", False),
        ({"cuda:0": "cuda:0"}, True),
        (lambda storage, _place: storage.cuda(), True),
    ):
        weight = torch.load(path, map_location=where)["weight"]
        assert weight.is_cuda is on_cuda
        assert torch.equal(weight, model.weight)
    whole = io.BytesIO()
    torch.save(model, whole)
    whole.seek(0)
    assert torch.equal(torch.load(whole, weights_only=False).weight, model.weight)
    assert copy.deepcopy(model).weight.is_cuda


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.ones(2) * index, index


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_give_host_batches(workers):
    torch.ones(1).cuda()
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=workers, pin_memory=True)
    batches = list(loader)
    assert len(batches) == 2
    assert not any(part.is_cuda for batch in batches for part in batch)
    assert batches[1][0].cuda().is_cuda


def test_pinned_memory_is_the_hosts():
    for made in (torch.zeros(2, pin_memory=True), torch.ones(2).new_empty(2, pin_memory=True)):
        assert not made.is_cuda
        assert made.is_pinned()
    assert torch.ones(2).pin_memory().is_pinned()


def test_numpy_shares_memory_with_the_host_tensor_only():
    numpy = pytest.importorskip("numpy")
    array = numpy.zeros(3, dtype="float32")
    host = torch.from_numpy(array)
    device = host.cuda()
    device.add_(1)
    assert array.sum() == 0
    host.add_(1)
    assert array.sum() == 3
    assert device.cpu().numpy().sum() == 3
