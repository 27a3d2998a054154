"""How many parameters are trained of the paper's models, by their real configurations."""

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, Qwen2Config

from mamushi.lm import parameters
from tests.support.models import PARTS

LLAMA_3_1_8B = LlamaConfig(
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    tie_word_embeddings=False,
)
QWEN_2_5_7B = Qwen2Config(
    vocab_size=152064,
    hidden_size=3584,
    intermediate_size=18944,
    num_hidden_layers=28,
    num_attention_heads=28,
    num_key_value_heads=4,
    tie_word_embeddings=False,
)
GEMMA_2_2B = Gemma2Config(
    vocab_size=256000,
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=26,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=256,
    tie_word_embeddings=True,
)


def block_size(config, biases: int, norms: int) -> int:
    """Parameters of one block, from the shapes of its matrices."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    width = getattr(config, "head_dim", None) or hidden // heads
    attention = 2 * hidden * width * (heads + config.num_key_value_heads)
    return attention + biases + 3 * hidden * config.intermediate_size + norms * hidden


@pytest.mark.parametrize(
    ("config", "billions", "biases", "norms", "embeddings"),
    [
        (LLAMA_3_1_8B, 1.70, 0, 2, 2),
        (QWEN_2_5_7B, 1.79, 3584 + 2 * 512, 2, 2),
        (GEMMA_2_2B, 0.82, 0, 4, 1),
    ],
    ids=["llama-3.1-8b", "qwen-2.5-7b", "gemma-2-2b"],
)
def test_trained_counts_of_the_papers_models(config, billions, biases, norms, embeddings):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    parameters.freeze(model, PARTS)
    trained = model.num_parameters(only_trainable=True)
    block = block_size(config, biases, norms)
    assert trained == 3 * block + embeddings * config.vocab_size * config.hidden_size
    assert trained / 1e9 == pytest.approx(billions, abs=0.01)
