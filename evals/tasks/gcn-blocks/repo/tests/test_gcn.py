import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from gcn.models import GCN
from gcn.utils import load_data


def test_an_isolated_graph_is_a_plain_network():
    x = torch.randn(5, 4)
    eye = torch.sparse_coo_tensor(torch.arange(5).repeat(2, 1), torch.ones(5), (5, 5)).coalesce()
    model = GCN(4, 8, 3)
    hidden = torch.relu(x @ model.gc1.weight + model.gc1.bias)
    expected = torch.log_softmax(hidden @ model.gc2.weight + model.gc2.bias, dim=1)
    assert torch.allclose(model(x, eye), expected, atol=1e-6)


def test_rows_of_the_adjacency_see_their_own_node():
    adj, features, labels, mask = load_data()
    assert adj.shape == (len(labels), len(labels))
    assert mask.sum() == 30
    assert (adj.to_dense().diagonal() > 0).all()
