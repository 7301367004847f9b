"""Base models of 66 Hugging Face architectures, made tiny, with random weights and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from evals.conformance.bench import Bench

Inputs = Literal["text", "text_pair", "image", "wave", "spectrogram", "image_and_text"]

# Sizes under the names configurations use for them; a model takes those its configuration has.
_WIDTH, _LAYERS, _HEADS, _INNER, _VOCABULARY, _LENGTH = 32, 2, 4, 64, 99, 64
_SIZES: Mapping[str, int] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim"), _WIDTH),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), _LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), _LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), _HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), _HEADS),
    **dict.fromkeys(("intermediate_size", "n_inner", "d_ff", "d_inner", "ffn_dim"), _INNER),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim"), _INNER),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), _LENGTH),
    **dict.fromkeys(("num_experts", "num_local_experts"), 4),
    **dict.fromkeys(("d_kv", "head_dim", "state_size"), 8),
    "vocab_size": _VOCABULARY,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "embedding_size": 16,
    "sliding_window": 16,
    "projection_dim": _WIDTH,
    "type_vocab_size": 2,
    "rotary_dim": 4,
    "image_size": 32,
    "patch_size": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


@dataclass(frozen=True)
class Architecture:
    """One model type.

    Attributes:
        inputs: What its forward pass takes.
        options: Configuration values besides the common sizes.
        common_sizes: Whether the common sizes apply; composed configurations set their own.
    """

    inputs: Inputs
    options: Mapping[str, Any] = field(default_factory=dict)
    common_sizes: bool = True


def _plain(inputs: Inputs, names: str) -> dict[str, Architecture]:
    return {name: Architecture(inputs) for name in names.split()}


_TWO_STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1]}
_WAVE = {
    "conv_dim": [16, 16],
    "conv_stride": [5, 4],
    "conv_kernel": [10, 8],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}
_TOWER = {
    "hidden_size": _WIDTH,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "intermediate_size": _INNER,
    "projection_dim": _WIDTH,
}
_TWO_TOWERS = {
    "vision_config": {**_TOWER, "image_size": 32, "patch_size": 8},
    "text_config": {
        **_TOWER,
        "vocab_size": _VOCABULARY,
        "max_position_embeddings": 32,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}

ARCHITECTURES: dict[str, Architecture] = {
    **_plain(
        "text",
        "albert bert bloom codegen cohere distilbert electra ernie falcon fnet gemma gemma2 "
        "gemma3_text gpt2 gpt_neox gptj gpt_oss granite llama mistral mixtral mpnet olmo2 opt phi "
        "phi3 qwen2 qwen3 roberta smollm3 stablelm starcoder2 xlm-roberta xlnet",
    ),
    "big_bird": Architecture("text", {"attention_type": "original_full"}),
    "deberta-v2": Architecture("text", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "deepseek_v3": Architecture(
        "text",
        {
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "num_key_value_heads": 4,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "qk_head_dim": 16,
            "v_head_dim": 8,
        },
    ),
    "gpt_neo": Architecture("text", {"attention_types": [[["global", "local"], 1]], "window_size": 8}),
    "longformer": Architecture("text", {"attention_window": [8, 8]}),
    "mamba": Architecture("text", {"time_step_rank": 4}),
    "mamba2": Architecture(
        "text",
        {
            "num_heads": 8,
            "head_dim": 8,
            "hidden_size": _WIDTH,
            "expand": 2,
            "n_groups": 2,
            "chunk_size": 8,
        },
    ),
    "modernbert": Architecture("text", {"global_attn_every_n_layers": 2, "local_attention": 8}),
    "qwen3_moe": Architecture("text", {"decoder_sparse_step": 1}),
    "rwkv": Architecture("text", {"attention_hidden_size": _WIDTH, "context_length": _LENGTH}),
    **_plain("text_pair", "bart mbart pegasus t5"),
    **_plain("image", "beit deit dinov2 vit vit_mae"),
    "convnext": Architecture("image", {**_TWO_STAGES, "num_stages": 2}),
    "efficientnet": Architecture("image", {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320}),
    "mobilenet_v2": Architecture("image", {"depth_multiplier": 0.25}),
    "regnet": Architecture("image", {**_TWO_STAGES, "embedding_size": 8, "groups_width": 4}),
    "resnet": Architecture("image", {**_TWO_STAGES, "embedding_size": 8}),
    "segformer": Architecture(
        "image",
        {
            **_TWO_STAGES,
            "num_encoder_blocks": 2,
            "num_attention_heads": [1, 2],
            "sr_ratios": [2, 1],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    "swin": Architecture(
        "image",
        {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2, "patch_size": 2},
    ),
    **{name: Architecture("wave", _WAVE) for name in ("hubert", "wav2vec2", "wavlm")},
    "whisper": Architecture(
        "spectrogram",
        {"num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 32},
    ),
    **{name: Architecture("image_and_text", _TWO_TOWERS, common_sizes=False) for name in ("clip", "siglip")},
}


def _configuration(name: str, architecture: Architecture) -> Any:
    from transformers import AutoConfig

    default = AutoConfig.for_model(name)
    aliases = dict(getattr(default, "attribute_map", {}))
    known = set(default.to_dict()) | set(aliases)
    sizes = {key: value for key, value in _SIZES.items() if key in known}
    # A size may be known by two names; setting both is an error in some configurations.
    sizes = {key: value for key, value in sizes.items() if aliases.get(key) not in sizes}
    chosen = (sizes if architecture.common_sizes else {}) | dict(architecture.options)
    return AutoConfig.for_model(name, **chosen)


def _inputs(name: str, architecture: Architecture) -> dict[str, torch.Tensor]:
    draws = torch.Generator().manual_seed(5)
    tokens = torch.randint(3, 90, (2, 16), generator=draws)
    image = torch.randn(2, 3, 32, 32, generator=draws)
    if architecture.inputs == "text":
        return {"input_ids": tokens}
    if architecture.inputs == "text_pair":
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, :8]}
    if architecture.inputs == "wave":
        return {"input_values": torch.randn(2, 400, generator=draws)}
    if architecture.inputs == "spectrogram":
        spectrogram = torch.randn(2, 16, 64, generator=draws)
        return {"input_features": spectrogram, "decoder_input_ids": tokens[:, :8]}
    if architecture.inputs == "image_and_text":
        # CLIP pools at the end-of-text token, so there has to be one.
        return {"input_ids": tokens.index_fill(1, torch.tensor([15]), 2), "pixel_values": image}
    noise = {"noise": torch.rand(2, 16, generator=draws)} if name == "vit_mae" else {}
    return {"pixel_values": image, **noise}


def _floats(output: Any) -> list[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        return [output.float()] if output.is_floating_point() else []
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in _floats(part)]
    if isinstance(output, Mapping):
        return [tensor for part in output.values() for tensor in _floats(part)]
    return []


def _case(name: str) -> Callable[[Bench], Any]:
    def forward(bench: Bench) -> list[torch.Tensor]:
        import transformers

        transformers.logging.set_verbosity_error()
        architecture = ARCHITECTURES[name]
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(_configuration(name, architecture)).eval()
        model.to(bench.device)
        inputs = {key: bench.on(value) for key, value in _inputs(name, architecture).items()}
        with torch.no_grad():
            return _floats(bench.compiled(model)(**inputs))

    return forward


# torch.compile builds a program anew for every architecture, so it is tried on one of each kind:
# encoders, decoders, mixtures of experts, state spaces, recurrence, both halves, vision, sound.
COMPILED = (
    "albert",
    "bert",
    "bloom",
    "clip",
    "convnext",
    "deberta-v2",
    "distilbert",
    "fnet",
    "gemma",
    "gpt2",
    "gpt_neox",
    "llama",
    "mamba",
    "mixtral",
    "opt",
    "phi",
    "qwen3_moe",
    "resnet",
    "rwkv",
    "swin",
    "t5",
    "vit",
    "wav2vec2",
    "whisper",
)


def load() -> dict[str, Callable[[Bench], Any]]:
    """Returns one case an architecture: the forward pass of its base model."""
    return {name: _case(name) for name in sorted(ARCHITECTURES)}
