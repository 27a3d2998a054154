"""Embeddings by SmolLM2 against a loop over transformers, a sentence at a time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from mamushi.lm import device, loading
from mamushi.lm.embed import embed
from tests.support.real_texts import SENTENCES, token_set

pytestmark = pytest.mark.slow

TOLERANCES = {"fp32": 1e-3, "bf16": 0.06}
"""How far a vector may be away, as a share of its length: float16, in which embeddings are kept,
and numbers of 8 bits through thirty blocks."""
LAYER = 12


@pytest.fixture(scope="module")
def states(smollm2: Path) -> list[dict[int, np.ndarray]]:
    """Of each sentence the states (tokens, width) of a middle layer, and the final ones."""
    tokenizer = AutoTokenizer.from_pretrained(smollm2.parent)
    model = AutoModel.from_pretrained(smollm2.parent, dtype=torch.float32)
    found = []
    for text in SENTENCES:
        with torch.inference_mode():
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            out = model(input_ids=ids, output_hidden_states=True)
        middle, final = out.hidden_states[LAYER][0], out.last_hidden_state[0]
        found.append({LAYER: middle.numpy(), -1: final.numpy()})
    return found


@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("layer", [LAYER, -1])
def test_embeddings_are_those_of_a_plain_loop(
    smollm2: Path, states: list[dict[int, np.ndarray]], precision: str, layer: int
) -> None:
    ways = {
        ("mean", False): lambda tokens: tokens.mean(axis=0),
        ("mean", True): lambda tokens: tokens[1:].mean(axis=0),
        ("last", False): lambda tokens: tokens[-1],
    }
    accelerator = device.accelerator(precision)
    model = device.place(loading.open_model(smollm2), precision, accelerator.device)
    for (pooling, skip_first), plain in ways.items():
        found = embed(
            model,
            token_set(smollm2, SENTENCES),
            pooling=pooling,
            layers=[layer],
            skip_first=skip_first,
            batch_tokens=128,
            accelerator=accelerator,
        )[0].astype(np.float64)
        expected = np.array([plain(one[layer].astype(np.float64)) for one in states])
        away = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert (away < TOLERANCES[precision]).all()
