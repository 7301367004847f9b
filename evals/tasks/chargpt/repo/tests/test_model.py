import torch

from chargpt.model import CharGPT


def small():
    torch.manual_seed(0)
    return CharGPT(alphabet=11, width=16, num_layers=2, num_heads=2, context=8, dropout=0.0)


def test_logits_have_one_score_for_each_symbol():
    logits, loss = small()(torch.zeros(3, 8, dtype=torch.long))
    assert logits.shape == (3, 8, 11)
    assert loss is None


def test_head_and_symbols_are_one_parameter():
    model = small()
    assert model.head.weight is model.symbols.weight


def test_a_position_does_not_see_what_follows():
    model = small().eval()
    codes = torch.randint(11, (1, 8))
    changed = codes.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 11
    before, after = model(codes)[0], model(changed)[0]
    assert torch.allclose(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


def test_training_lowers_the_loss():
    model = small()
    optimizer = torch.optim.AdamW(model.decay_groups(0.1), lr=1e-2)
    codes = torch.arange(9).repeat(4, 1)
    losses = []
    for _ in range(30):
        _, loss = model(codes[:, :8], codes[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_writing_appends_the_asked_number_of_characters():
    written = small().eval().write(torch.zeros(1, 3, dtype=torch.long), 20)
    assert written.shape == (1, 23)
