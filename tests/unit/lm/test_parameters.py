"""How many parameters are trained of the paper's models, by their real configurations."""

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, Qwen2Config

from mamushi.lm import parameters
from tests.support.models import training_of

NAMES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
NAMES += ("num_attention_heads", "num_key_value_heads")
LLAMA_3_1_8B = LlamaConfig(
    **dict(zip(NAMES, (128256, 4096, 14336, 32, 32, 8), strict=True)), tie_word_embeddings=False
)
QWEN_2_5_7B = Qwen2Config(
    **dict(zip(NAMES, (152064, 3584, 18944, 28, 28, 4), strict=True)), tie_word_embeddings=False
)
GEMMA_2_2B = Gemma2Config(
    **dict(zip(NAMES, (256000, 2304, 9216, 26, 8, 4), strict=True)),
    head_dim=256,
    tie_word_embeddings=True,
)


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
    parameters.freeze(model, training_of({}))
    trained = model.num_parameters(only_trainable=True)
    hidden, heads = config.hidden_size, config.num_attention_heads
    width = getattr(config, "head_dim", None) or hidden // heads
    attention = 2 * hidden * width * (heads + config.num_key_value_heads)
    block = attention + biases + 3 * hidden * config.intermediate_size + norms * hidden
    assert trained == 3 * block + embeddings * config.vocab_size * hidden
    assert trained / 1e9 == pytest.approx(billions, abs=0.01)
