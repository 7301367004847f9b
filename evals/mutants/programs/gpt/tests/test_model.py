"""Shapes, ties and causality of the model."""

import torch
from model import Model


def test_the_head_is_tied_to_the_embedding():
    """The head is tied to the embedding."""
    model = Model()
    assert model.head.weight is model.tokens.weight


def test_a_token_does_not_see_the_future():
    """A token does not see the future."""
    torch.manual_seed(0)
    model = Model().eval()
    tokens = torch.randint(0, 33, (1, 8))
    changed = tokens.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 33
    assert torch.allclose(model(tokens)[0, :7], model(changed)[0, :7], atol=1e-6)


def test_logits_have_the_size_of_the_vocabulary():
    """Logits have the size of the vocabulary."""
    assert Model()(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 33)
