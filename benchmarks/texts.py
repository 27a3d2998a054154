"""Texts and models for the benchmarks of training and embedding: real lengths, random weights."""

from typing import Any

import numpy as np
from transformers import Gemma2Config, LlamaConfig, PreTrainedModel, Qwen2Config

from mamushi.config.sections import Training
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet, offsets_of

KINDS = {"tweets": (3.16, 0.4, 64), "posts": (3.95, 0.9, 128)}
"""Lengths of texts in tokens: mean and deviation of their logarithm, and the longest. On average,
tweets have 25 tokens, and posts 61, as Jigsaw's."""
# SmolLM2-135M, as its configuration on the hub has it.
SMALL: dict[str, Any] = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "use_cache": False,
}
# As the configurations of the models on the hub have them.
FULL = {
    "llama": LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        use_cache=False,
    ),
    "qwen2": Qwen2Config(
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        use_cache=False,
    ),
    "gemma2": Gemma2Config(use_cache=False),
}
TRAINING = Training(epochs=1.0)


def drawn(kind: str, count: int, vocabulary: int, seed: int = 0) -> TokenSet:
    """Texts of such lengths, whose tokens follow Zipf's law."""
    rng = np.random.default_rng(seed)
    mean, deviation, longest = KINDS[kind]
    lengths = np.clip(rng.lognormal(mean, deviation, count), 3, longest).astype(np.int64)
    odds = 1.0 / np.arange(1, vocabulary + 1)
    flat = rng.choice(vocabulary, size=int(lengths.sum()), p=odds / odds.sum()).astype(np.int32)
    ids = np.array([f"t{i:06d}" for i in range(count)], dtype=object)
    domains = np.array(["forget", "retain"], dtype=object)[np.arange(count) % 2]
    return TokenSet(ids, domains, flat, offsets_of(lengths))


def operations_per_token(model: PreTrainedModel) -> float:
    """Of a training step, by the formula: forward 2N, gradients through all blocks 2N, and 2 for
    each weight that is trained; N are the weights of matrix products."""
    blocks = decoder_blocks(model)
    body = [sum(p.numel() for p in block.parameters() if p.ndim > 1) for block in blocks]
    head = model.get_output_embeddings().weight.numel()
    return float(4 * (sum(body) + head) + 2 * (sum(body[-TRAINING.trained_blocks :]) + head))
