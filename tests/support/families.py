"""Tiny random models of many families of decoders, made from nothing but their configurations."""

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

VOCABULARY = 64
ORIGINAL = 8
"""Positions of the models whose rotary frequencies change for longer texts."""

Options = dict[str, Any]
WIDE: Options = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BLOCKS: Options = {**WIDE, "intermediate_size": 32, "max_position_embeddings": 64}
GROUPED: Options = {**BLOCKS, "num_key_value_heads": 1, "head_dim": 8}
EXPERTS: Options = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LOCAL: Options = {"num_local_experts": 4, "num_experts_per_tok": 2}
GPT: Options = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
STILL: Options = dict.fromkeys(
    [
        *("attn_pdrop", "embd_pdrop", "resid_pdrop", "dropout", "attention_dropout"),
        *("activation_dropout", "layerdrop", "residual_dropout", "hidden_dropout_prob"),
        "attention_probs_dropout_prob",
    ],
    0.0,
)
"""Without the dropout that these families have by default."""
STATE: Options = {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}


def rope(kind: str, **more: Any) -> Options:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


AT_FIRST: Options = {"original_max_position_embeddings": ORIGINAL}
FACTORS: Options = {"short_factor": [1.0] * 4, "long_factor": [3.0, 4.0, 5.0, 6.0]}
LONGROPE = {**rope("longrope", factor=8.0, **FACTORS, **AT_FIRST), **AT_FIRST}
TYPES = ["sliding_attention", "full_attention"]
SLIDING: Options = {"sliding_window": 4, "layer_types": TYPES}
DYNAMIC: Options = {**GROUPED, "max_position_embeddings": ORIGINAL}
# What makes configurations of transformers tiny, by their type, the first word of a name. Sliding
# windows are shorter than the texts of the tests; no dropout, so that gradients can be compared.
FAMILIES: dict[str, Options] = {
    "gpt2": {**GPT, **STILL},
    "gpt_neo": {
        **{"hidden_size": 16, "num_layers": 2, "num_heads": 2, "max_position_embeddings": 64},
        **{"attention_types": [[["global", "local"], 1]], "window_size": 4},
    },
    "gpt_neox": BLOCKS,
    "opt": {**WIDE, "ffn_dim": 32, "max_position_embeddings": 64, **STILL},
    "bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "falcon": {**WIDE, "alibi": False},
    "phi": {**BLOCKS, "partial_rotary_factor": 0.5, "qk_layernorm": True},
    "phi3": BLOCKS,
    "phi3 longrope": {**BLOCKS, **LONGROPE},
    "llama": GROUPED,
    "llama dynamic": {**DYNAMIC, **rope("dynamic", factor=4.0)},
    "llama longrope": {**GROUPED, **LONGROPE},
    "mistral": {**GROUPED, "sliding_window": 4},
    "mixtral": {**GROUPED, **LOCAL},
    "olmo2": BLOCKS,
    "qwen2": {**GROUPED, "tie_word_embeddings": True},
    "qwen3": GROUPED,
    "qwen3_moe": {**GROUPED, **EXPERTS, "decoder_sparse_step": 1},
    "qwen3_next": {
        **{**GROUPED, **EXPERTS, "shared_expert_intermediate_size": 16},
        **{"layer_types": ["linear_attention", "full_attention"]},
        **{"linear_num_key_heads": 2, "linear_num_value_heads": 2},
        **{"linear_key_head_dim": 8, "linear_value_head_dim": 8},
    },
    "gemma2": {**GROUPED, "sliding_window": 4, "query_pre_attn_scalar": 8},
    "gemma3_text": {**GROUPED, **SLIDING, "query_pre_attn_scalar": 8},
    "granite": {
        **{**BLOCKS, "logits_scaling": 4.0, "embedding_multiplier": 3.0},
        **{"residual_multiplier": 0.5, "attention_multiplier": 0.2},
    },
    "cohere2": {**BLOCKS, **SLIDING, "logit_scale": 0.25},
    "smollm3": {**GROUPED, "no_rope_layers": [1, 0]},
    "gpt_oss": {**GROUPED, **LOCAL, **SLIDING, **rope("default")},
    "mamba": STATE,
    "mamba2": {**STATE, "num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
    "recurrent_gemma": {
        **{**WIDE, "intermediate_size": 32, "lru_width": 16, "attention_window_size": 4},
        **{"block_types": ["recurrent", "attention"]},
    },
    "jamba": {
        **{**BLOCKS, "num_key_value_heads": 1, "num_experts": 4},
        **{"attn_layer_period": 2, "attn_layer_offset": 1},
        **{"expert_layer_period": 2, "expert_layer_offset": 1},
        **{"use_mamba_kernels": False, "mamba_d_state": 4},
    },
    "lfm2": {**GROUPED, "layer_types": ["conv", "full_attention"]},
    "deepseek_v3": {
        **{**BLOCKS, "moe_intermediate_size": 16, "n_routed_experts": 4, "n_group": 1},
        **{"topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1},
        **{"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4},
        **{"qk_nope_head_dim": 4, "v_head_dim": 8},
    },
    "llama4_text": {
        **{**DYNAMIC, **LOCAL, "intermediate_size_mlp": 32, "attention_chunk_size": 4},
        **{"layer_types": ["chunked_attention", "full_attention"], **rope("dynamic", factor=4.0)},
    },
}


def tiny(family: str, seed: int = 0) -> PreTrainedModel:
    """A fresh tiny model of a family in fp32, in eval mode."""
    return of_kind(family.partition(" ")[0], FAMILIES[family], seed)


def of_kind(kind: str, options: Options, seed: int = 0) -> PreTrainedModel:
    """The same of any type of the library, its weights so large that logits are far from
    uniform."""
    special = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(kind, **{**special, **options})
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.is_floating_point():
                parameter.normal_(0, 0.2)
    return model
