"""Shapes and statistics of the network."""

import torch
from network import Network, Residual


def test_a_block_keeps_the_shape():
    """A block keeps the shape."""
    assert Residual(4)(torch.zeros(2, 4, 6, 6)).shape == (2, 4, 6, 6)


def test_statistics_move_in_training_only():
    """Statistics move in training only."""
    network = Network()
    before = network.norm.running_mean.clone()
    network.eval()(torch.randn(2, 3, 12, 12))
    assert torch.equal(before, network.norm.running_mean)
    network.train()(torch.randn(2, 3, 12, 12))
    assert not torch.equal(before, network.norm.running_mean)


def test_there_is_a_logit_for_each_class():
    """There is a logit for each class."""
    assert Network(num_classes=7)(torch.zeros(1, 3, 12, 12)).shape == (1, 7)
