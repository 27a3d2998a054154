"""Tiny models of the three real architectures, and token sets, for tests."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from mamushi.config.sections import Training
from mamushi.lm.tokens import TokenSet

FAMILIES = ("llama", "qwen2", "gemma2")
CONFIGS: dict[str, tuple[type[PreTrainedConfig], dict[str, object]]] = {
    "llama": (LlamaConfig, {"tie_word_embeddings": False}),
    "qwen2": (Qwen2Config, {"tie_word_embeddings": True}),
    "gemma2": (Gemma2Config, {"head_dim": 8, "sliding_window": 8}),
    "gemma": (GemmaConfig, {"head_dim": 8}),
    "mistral": (MistralConfig, {"head_dim": 8, "sliding_window": 8}),
    "qwen3": (Qwen3Config, {"head_dim": 8}),
}
VOCABULARY = 50

SIZES = {
    "hidden_size": 16,
    "layers": 4,
    "heads": 2,
    "key_value_heads": 1,
    "intermediate_size": 32,
    "vocabulary_size": 280,
    "max_positions": 32,
}
"""Of a model that `tiny.build` makes."""

ENDS_FROZEN = {"train_input_embedding": False, "train_output_head": False}
"""As an unlearner has it: embeddings and head frozen."""

ADAPTERS = {"rank": 4, "alpha": 8.0, "dropout": 0.0, "target_modules": None}
"""Of the method `lora`."""

TRAINING = {
    "epochs": 2.0,
    "batch_size": 4,
    "micro_batch_size": 4,
    "learning_rate": 1e-2,
    "max_length": 16,
    "trained_blocks": 2,
    "precision": "fp32",
}
"""Where it is not as the defaults are."""


def training_of(settings: Mapping[str, Any]) -> Training:
    """The section of these settings, of which some may be of others."""
    return Training.model_validate(settings, extra="ignore")


def model(family: str, seed: int = 0, layers: int = 3) -> PreTrainedModel:
    """A fresh tiny model with weights large enough that its logits are far from uniform."""
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    config, more = CONFIGS[family]
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config(**shape, **more), dtype=torch.float32).eval()


def token_set(count: int = 22, seed: int = 0, longest: int = 14) -> TokenSet:
    """Random texts of 1 to ``longest`` tokens, half of them of each domain."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=count)
    flat = rng.integers(0, VOCABULARY, size=lengths.sum()).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    domains = np.array(["forget", "retain"])[np.arange(count) % 2]
    return TokenSet(np.array([f"t{i:03d}" for i in range(count)]), domains, flat, offsets)
