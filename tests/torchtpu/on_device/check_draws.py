"""With draws replayed, a program with the same seed draws the same numbers on the device and on the CPU."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torchtpu.proof import draws

draws.install(torch)

P = torch.linspace(0.1, 0.9, 12).reshape(3, 4)

DRAWS = {
    "rand": lambda d: torch.rand(3, 4, device=d),
    "randn": lambda d: torch.randn(5, 7, device=d),
    "randn of 40": lambda d: torch.randn(40, device=d),
    "rand_like": lambda d: torch.rand_like(P.to(d)),
    "randn_like of a transposed tensor": lambda d: torch.randn_like(P.to(d).t()),
    "randint": lambda d: torch.randint(0, 9, (6,), device=d),
    "randint_like": lambda d: torch.randint_like(P.to(d), 5),
    "randperm": lambda d: torch.randperm(9, device=d),
    "normal_": lambda d: torch.empty(4, 5, device=d).normal_(1.0, 2.0),
    "normal_ on a view": lambda d: torch.zeros(4, 6, device=d)[:, ::2].normal_(),
    "uniform_": lambda d: torch.empty(8, device=d).uniform_(-1, 1),
    "random_": lambda d: torch.empty(8, device=d).random_(),
    "random_(from, to)": lambda d: torch.empty(8, dtype=torch.int32, device=d).random_(2, 8),
    "random_(to)": lambda d: torch.empty(8, dtype=torch.int32, device=d).random_(8),
    "exponential_": lambda d: torch.empty(8, device=d).exponential_(2.0),
    "bernoulli": lambda d: torch.bernoulli(P.to(d)),
    "bernoulli_(p)": lambda d: torch.empty(6, 6, device=d).bernoulli_(0.3),
    "bernoulli_(tensor)": lambda d: torch.empty(3, 4, device=d).bernoulli_(P.to(d)),
    "bernoulli(out=)": lambda d: torch.bernoulli(P.to(d), out=torch.empty(3, 4, device=d)),
    "multinomial": lambda d: torch.multinomial(P.to(d), 3),
    "multinomial with replacement": lambda d: torch.multinomial(P.to(d), 9, replacement=True),
    "normal of tensors": lambda d: torch.normal(P.to(d), P.to(d)),
    "normal of a tensor": lambda d: torch.normal(P.to(d), 2.0),
    "normal of a deviation": lambda d: torch.normal(1.0, P.to(d)),
    "normal of numbers": lambda d: torch.normal(1.0, 2.0, (3,), device=d),
    "normal(out=)": lambda d: torch.normal(P.to(d), P.to(d), out=torch.empty(3, 4, device=d)),
    "rand(out=)": lambda d: torch.rand(3, 4, out=torch.empty(3, 4, device=d)),
    "dropout": lambda d: F.dropout(P.to(d), 0.4),
    "dropout_": lambda d: F.dropout(P.clone().to(d), 0.4, inplace=True),
    "dropout of a transposed tensor": lambda d: F.dropout(P.to(d).t(), 0.4),
    "dropout1d": lambda d: F.dropout1d(torch.ones(3, 4, 5).to(d), 0.4),
    "dropout2d": lambda d: F.dropout2d(torch.ones(2, 4, 3, 3).to(d), 0.4),
    "alpha_dropout": lambda d: F.alpha_dropout(P.to(d), 0.4, training=True),
    "feature_alpha_dropout": lambda d: F.feature_alpha_dropout(torch.ones(3, 4, 5).to(d), 0.4, training=True),
    "native_dropout": lambda d: torch.native_dropout(P.to(d), 0.4, True)[0],
    "gumbel_softmax": lambda d: F.gumbel_softmax(P.to(d)),
    "normal distribution": lambda d: torch.distributions.Normal(P.to(d), P.to(d)).rsample(),
    "categorical distribution": lambda d: torch.distributions.Categorical(P.to(d)).sample((3,)),
    "generator of the CPU": lambda d: torch.randn(4, device=d, generator=torch.Generator().manual_seed(5)),
    "generator of the device": lambda d: torch.randn(4, device=d, generator=torch.Generator(device=d).manual_seed(5)),
    "randperm with a generator": lambda d: torch.randperm(
        9, device=d, generator=torch.Generator(torch.device(d)).manual_seed(5)
    ),
    "nn.init": lambda d: nn.init.trunc_normal_(nn.init.xavier_uniform_(torch.empty(4, 4, device=d))),
    "module on the device": lambda d: nn.Linear(3, 4, device=d).weight,
    "bfloat16": lambda d: torch.randn(5, 7, device=d, dtype=torch.bfloat16).float(),
    "dropout in bfloat16": lambda d: F.dropout(P.to(d, torch.bfloat16), 0.4).float(),
    "attention": lambda d: F.scaled_dot_product_attention(*[P.to(d).reshape(1, 1, 3, 4)] * 3, dropout_p=0.3),
}


def drawn(name, device):
    torch.manual_seed(11)
    before = draws.count()
    made = DRAWS[name](device).detach().cpu()
    return made, torch.rand(1), draws.count() - before


@pytest.mark.parametrize("name", DRAWS)
def test_same_numbers_and_same_state_afterwards(name):
    expected, next_expected, number = drawn(name, "cpu")
    actual, next_actual, same_number = drawn(name, "tpu")
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(next_actual, next_expected)
    assert number == same_number >= 2


def test_the_log_names_the_users_line(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHTPU_ROOT", str(tmp_path))
    source = "import torch\ndef draw(device):\n    a = torch.randn(2, device=device)\n    return a.bernoulli_(0.5)\n"
    space = {}
    (tmp_path / "prog.py").write_text(source)
    exec(compile(source, str(tmp_path / "prog.py"), "exec"), space)
    logs = []
    for device in ("cpu", "tpu"):
        before = draws.count()
        space["draw"](device)
        logs.append([{**draw, "number": draw["number"] - before} for draw in draws.log()[before:]])
    assert logs[0] == logs[1]
    assert logs[0] == [
        {"number": 0, "op": "normal", "shape": (2,), "dtype": "float32", "where": "prog.py:3"},
        {"number": 1, "op": "bernoulli", "shape": (2,), "dtype": "float32", "where": "prog.py:4"},
    ]


def gradient(device, build, data):
    torch.manual_seed(2)
    model = build()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    model.to(device)
    torch.manual_seed(3)
    made = model(data.to(device))
    (made[0] if isinstance(made, tuple) else made).pow(2).sum().backward()
    return [p.grad.cpu() for p in model.parameters()]


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2)),
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3),
        lambda: nn.LSTM(4, 3, num_layers=3, dropout=0.4),
        lambda: nn.LSTM(4, 3, num_layers=2, dropout=0.4, batch_first=True, bidirectional=True),
        lambda: nn.GRU(4, 3, num_layers=2, dropout=0.4, bias=False),
    ],
    ids=["dropout", "transformer", "lstm", "lstm both ways", "gru"],
)
def test_gradients_through_what_was_drawn(build):
    data = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0))
    for actual, expected in zip(gradient("tpu", build, data), gradient("cpu", build, data), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_dropout_of_everything():
    assert not F.dropout(P.to("tpu"), 1.0).cpu().any()


def test_dropout_in_evaluation_draws_nothing():
    before = draws.count()
    assert torch.equal(F.dropout(P.to("tpu"), 0.4, training=False).cpu(), P)
    assert torch.equal(F.dropout(P.to("tpu"), 0.0).cpu(), P)
    assert draws.count() == before


def test_what_the_device_lacks_still_fails():
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.empty(3, device="tpu").cauchy_().cpu()
