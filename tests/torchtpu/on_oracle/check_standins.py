"""Libraries of CUDA kernels that are not installed compute what PyTorch's operators do."""

import importlib.util

import pytest
import torch
import torch.nn.functional as F


def qkv(keys=6, heads=4, kv_heads=4):
    torch.manual_seed(0)
    return (
        torch.randn(2, 6, heads, 8, device="cuda", requires_grad=True),
        torch.randn(2, keys, kv_heads, 8, device="cuda"),
        torch.randn(2, keys, kv_heads, 8, device="cuda"),
    )


def reference(q, k, v, seen=None):
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], dim=2) for t in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / 8**0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)


def test_flash_attention():
    from flash_attn import flash_attn_func

    q, k, v = qkv()
    below = torch.ones(6, 6, dtype=torch.bool).tril()
    torch.testing.assert_close(flash_attn_func(q, k, v), reference(q, k, v))
    torch.testing.assert_close(flash_attn_func(q, k, v, causal=True), reference(q, k, v, below))
    near = below & (torch.ones(6, 6).triu(-2) > 0)
    torch.testing.assert_close(flash_attn_func(q, k, v, causal=True, window_size=(2, -1)), reference(q, k, v, near))
    flash_attn_func(q, k, v, 0.5).sum().backward()
    assert q.grad is not None


def test_flash_attention_grouped_and_with_more_keys():
    from flash_attn.flash_attn_interface import flash_attn_func

    q, k, v = qkv(keys=9, kv_heads=2)
    # The last query sees the last key.
    seen = torch.ones(6, 9, dtype=torch.bool).tril(3)
    torch.testing.assert_close(flash_attn_func(q, k, v, causal=True), reference(q, k, v, seen))


def test_flash_attention_packed_and_of_several_lengths():
    from flash_attn import flash_attn_qkvpacked_func, flash_attn_varlen_func

    q, k, v = qkv()
    expected = reference(q, k, v)
    torch.testing.assert_close(flash_attn_qkvpacked_func(torch.stack([q, k, v], 2)), expected)
    flat = [t.flatten(0, 1) for t in (q, k, v)]
    ends = torch.tensor([0, 6, 12], dtype=torch.int32, device="cuda")
    made = flash_attn_varlen_func(*flat, ends, ends, 6, 6)
    torch.testing.assert_close(made, expected.flatten(0, 1))


def test_memory_efficient_attention():
    import xformers.ops as xops

    q, k, v = qkv()
    below = torch.ones(6, 6, dtype=torch.bool).tril()
    torch.testing.assert_close(xops.memory_efficient_attention(q, k, v), reference(q, k, v))
    made = xops.memory_efficient_attention(q, k, v, attn_bias=xops.LowerTriangularMask())
    torch.testing.assert_close(made, reference(q, k, v, below))
    torch.testing.assert_close(
        xops.memory_efficient_attention(q[:, :, 0], k[:, :, 0], v[:, :, 0]), reference(q, k, v)[:, :, 0]
    )


def test_apex_layers_and_optimizer():
    from apex.normalization import FusedLayerNorm
    from apex.optimizers import FusedAdam

    norm = FusedLayerNorm(4).cuda()
    x = torch.randn(2, 4, device="cuda")
    torch.testing.assert_close(norm(x), F.layer_norm(x, (4,)))
    optimizer = FusedAdam(norm.parameters(), lr=0.1, weight_decay=0.01)
    norm(x).pow(3).sum().backward()
    optimizer.step()
    assert not torch.equal(norm.weight, torch.ones(4))


def test_imports_and_what_is_missing_are_told(reports):
    import sys

    sys.modules.pop("flash_attn", None)
    import flash_attn

    with pytest.raises(ImportError):
        from flash_attn import flash_attn_with_kvcache  # noqa: F401
    with pytest.raises(RuntimeError, match="cannot be imitated"):
        flash_attn.flash_attn_func(*qkv(), softcap=1.0)
    assert [(event["kind"], event.get("call")) for event in reports()] == [
        ("stand-in", None),
        ("oracle", "flash_attn.flash_attn_with_kvcache"),
        ("oracle", "flash_attn.flash_attn_func"),
    ]


def test_an_absent_package_without_stand_in_stays_absent():
    assert importlib.util.find_spec("flash_attn_3") is None
    with pytest.raises(ModuleNotFoundError):
        import flash_attn.layers.rotary  # noqa: F401
