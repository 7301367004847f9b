"""Layers: convolution, pooling, resampling, recurrence, embedding, attention, normalisation."""
# ruff: noqa: D103, N812  a case is named by what it does; F is its name everywhere

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from evals.conformance.bench import Bench, backward_of_squares, gradients


def convolutions(bench: Bench) -> Any:
    image, kernel = bench.normal(2, 4, 8, 8), bench.normal(6, 4, 3, 3)

    def run(image: torch.Tensor, kernel: torch.Tensor) -> Any:
        return (
            F.conv2d(image, kernel, dilation=2),
            F.conv_transpose2d(image, kernel.transpose(0, 1).contiguous(), stride=2),
            F.conv1d(image[:, :, 1], kernel[..., 1], padding="same"),
            F.conv3d(image.unsqueeze(2), kernel.unsqueeze(2)),
        )

    return bench.compiled(run)(image, kernel)


def convolution_channels_last(bench: Bench) -> Any:
    image = bench.normal(2, 3, 5, 5).to(memory_format=torch.channels_last)
    return F.conv2d(image, bench.normal(4, 3, 3, 3))


def pooling(bench: Bench) -> Any:
    image = bench.normal(2, 3, 8, 8).requires_grad_()

    def run(image: torch.Tensor) -> Any:
        return (
            *F.max_pool2d(image, 2, return_indices=True),
            F.avg_pool2d(image, 3, 2, 1),
            F.adaptive_avg_pool2d(image, 3),
            F.adaptive_max_pool2d(image, 2),
            F.max_pool1d(image[:, :, 0], 2),
            F.lp_pool2d(image, 2, 2),
        )

    outputs = bench.compiled(run)(image)
    backward_of_squares([out for out in outputs if out.is_floating_point()])
    return outputs, image.grad


def resampling(bench: Bench) -> Any:
    image, grid = bench.normal(2, 4, 6, 6), bench.normal(2, 5, 5, 2).tanh()
    return [
        F.interpolate(image, scale_factor=2, mode="nearest"),
        F.interpolate(image, size=(5, 7), mode="bilinear"),
        F.interpolate(image, size=(10, 10), mode="bicubic"),
        F.pixel_shuffle(image, 2),
        F.grid_sample(image, grid, align_corners=False),
        F.pad(image, (1, 2, 1, 1), mode="reflect"),
        F.unfold(image, 3),
    ]


def lstm_two_layers_both_ways(bench: Bench) -> Any:
    model = bench.module(lambda: nn.LSTM(6, 10, 2, batch_first=True, bidirectional=True))
    outputs, (hidden, cell) = bench.compiled(model)(bench.normal(3, 5, 6))
    outputs.sum().backward()
    return outputs, hidden, cell, gradients(model)


def gru_and_rnn(bench: Bench) -> Any:
    gated, plain = bench.module(lambda: nn.GRU(6, 10)), bench.module(lambda: nn.RNN(6, 10))
    data = bench.normal(5, 3, 6)
    first, second = gated(data), plain(data)
    (first[0].sum() + second[0].sum()).backward()
    return first, second, gradients(gated), gradients(plain)


def lstm_packed(bench: Bench) -> Any:
    model = bench.module(lambda: nn.LSTM(6, 10, batch_first=True))
    rnn = nn.utils.rnn
    packed = rnn.pack_padded_sequence(bench.normal(3, 6, 6), torch.tensor([6, 4, 2]), batch_first=True)
    return rnn.pad_packed_sequence(model(packed)[0], batch_first=True)[0]


def embedding(bench: Bench) -> Any:
    table = bench.module(lambda: nn.Embedding(15, 6, padding_idx=0))
    rows = bench.compiled(table)(bench.on([[0, 1, 2], [4, 4, 14]]))
    backward_of_squares([rows])
    return rows, table.weight.grad


def embedding_bag(bench: Bench) -> Any:
    table = bench.module(lambda: nn.EmbeddingBag(15, 6, mode="mean"))
    bags = table(bench.on([0, 1, 2, 4, 4, 14]), bench.on([0, 2]))
    bags.sum().backward()
    return bags, table.weight.grad


def embedding_out_of_range_does_not_kill(bench: Bench) -> Any:
    if bench.is_reference:
        return torch.zeros(1, 6)
    table = bench.module(lambda: nn.Embedding(15, 6))
    return table(bench.on([21])) * 0


def scaled_dot_product_attention(bench: Bench) -> Any:
    query, key, value = (bench.normal(2, 4, 12, 8, seed=i).requires_grad_() for i in range(3))
    place = torch.arange(12)
    mask = bench.on(place[None] <= place[:, None])

    def run(query: Any, key: Any, value: Any) -> Any:
        attend = F.scaled_dot_product_attention
        return (
            attend(query, key, value),
            attend(query, key, value, is_causal=True),
            attend(query, key, value, attn_mask=mask),
            attend(query, key[:, :2], value[:, :2], enable_gqa=True),
        )

    outputs = bench.compiled(run)(query, key, value)
    backward_of_squares(outputs)
    return outputs, query.grad, key.grad, value.grad


def transformer_layer_and_multihead(bench: Bench) -> Any:
    layer = bench.module(lambda: nn.TransformerEncoderLayer(12, 3, 24, 0.0, batch_first=True))
    data = bench.normal(2, 5, 12)
    trained = layer(data)
    trained.sum().backward()
    layer.eval()
    attention = bench.module(lambda: nn.MultiheadAttention(12, 3, batch_first=True)).eval()
    with torch.no_grad():
        return trained, layer(data), attention(data, data, data), gradients(layer)


def flex_attention(bench: Bench) -> Any:
    from torch.nn.attention.flex_attention import flex_attention as flex

    data = bench.normal(1, 2, 128, 16)
    return flex(data, data, data)


def normalisations(bench: Bench) -> Any:
    data = bench.normal(3, 8, 6).requires_grad_()

    def run(data: torch.Tensor) -> Any:
        return (
            F.layer_norm(data, (6,)),
            F.rms_norm(data, (6,)),
            F.group_norm(data, 2),
            F.instance_norm(data),
            F.normalize(data, dim=-1),
            F.local_response_norm(data, 2),
        )

    outputs = bench.compiled(run)(data)
    backward_of_squares(outputs)
    return outputs, data.grad


def activations(bench: Bench) -> Any:
    data = bench.normal(4, 21).requires_grad_()
    functions = (
        F.relu,
        F.relu6,
        F.gelu,
        F.silu,
        F.elu,
        F.selu,
        F.mish,
        F.hardswish,
        F.softplus,
        F.leaky_relu,
        F.logsigmoid,
        torch.tanh,
        torch.sigmoid,
    )

    def run(data: torch.Tensor) -> Any:
        plain = [function(data) for function in functions]
        return [*plain, F.gelu(data, approximate="tanh"), data.softmax(-1), data.log_softmax(0)]

    outputs = bench.compiled(run)(data)
    sum(out.sum() for out in outputs).backward()
    return outputs, data.grad


def losses(bench: Bench) -> Any:
    scores, other = bench.normal(6, 5).requires_grad_(), bench.normal(6, 5, seed=3)
    labels, ones = bench.on([0, 1, -100, 3, 4, 0]), bench.on(torch.ones(6))

    def run(scores: torch.Tensor) -> Any:
        return [
            F.cross_entropy(scores, labels),
            F.cross_entropy(scores, labels, label_smoothing=0.1, reduction="none"),
            F.nll_loss(scores.log_softmax(-1), labels),
            F.mse_loss(scores, other),
            F.l1_loss(scores, other),
            F.smooth_l1_loss(scores, other),
            F.huber_loss(scores, other),
            F.binary_cross_entropy_with_logits(scores, other.sigmoid()),
            F.kl_div(scores.log_softmax(-1), other.softmax(-1), reduction="batchmean"),
            F.cosine_embedding_loss(scores, other, ones),
            F.triplet_margin_loss(scores, other, other.flip(0)),
        ]

    outputs = bench.compiled(run)(scores)
    sum(out.sum() for out in outputs).backward()
    return outputs, scores.grad


def ctc_loss(bench: Bench) -> Any:
    scores = bench.normal(10, 2, 6).log_softmax(-1)
    labels = bench.on([[1, 2, 3], [2, 2, 1]])
    return F.ctc_loss(scores, labels, torch.tensor([10, 8]), torch.tensor([3, 2]))


def dropout(bench: Bench) -> Any:
    torch.manual_seed(0)
    data = torch.ones(90, 90, device=bench.device, requires_grad=True)
    kept = bench.compiled(lambda x: F.dropout(x, 0.3))(data)
    kept.sum().backward()
    assert data.grad is not None
    share = (kept == 0).float().mean().item()
    same_mask = torch.equal(data.grad.cpu(), kept.detach().cpu())
    return [abs(share - 0.3) < 0.03, same_mask, abs(kept.mean().item() - 1) < 0.05]
