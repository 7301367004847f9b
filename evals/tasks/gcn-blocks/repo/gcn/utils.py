import numpy as np
import torch


def block_graph(num_nodes=120, num_classes=3, seed=0):
    """Edges are likelier within a class than between two."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(num_classes, size=num_nodes)
    same = labels[:, None] == labels[None, :]
    upper = np.triu(rng.rand(num_nodes, num_nodes) < np.where(same, 0.10, 0.01), k=1)
    rows, cols = np.nonzero(upper | upper.T)
    features = rng.randn(num_nodes, 16).astype(np.float32)
    features[np.arange(num_nodes), labels] += 1.0
    return np.stack([rows, cols]), features, labels


def normalize(edges, num_nodes):
    """D^-1/2 (A + I) D^-1/2 as a sparse matrix."""
    loops = np.arange(num_nodes)
    edges = np.concatenate([edges, np.stack([loops, loops])], axis=1)
    degree = np.bincount(edges[0], minlength=num_nodes).astype(np.float32)
    values = 1.0 / np.sqrt(degree[edges[0]] * degree[edges[1]])
    return torch.sparse_coo_tensor(
        torch.from_numpy(edges), torch.from_numpy(values), (num_nodes, num_nodes)
    ).coalesce()


def load_data(seed=0):
    edges, features, labels = block_graph(seed=seed)
    n = len(labels)
    order = torch.from_numpy(np.random.RandomState(seed + 1).permutation(n))
    train_mask = torch.zeros(n, dtype=torch.bool)
    train_mask[order[:30]] = True
    return normalize(edges, n), torch.from_numpy(features), torch.from_numpy(labels), train_mask
