"""Log-likelihoods of texts under SmolLM2 against a plain loop over transformers, a text at a time.

The loop feeds a text to the model as it is, in fp32, and sums log-softmax in float64. Here texts
are packed or padded, in batches of several sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mamushi.lm import device, loading
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, encode, offsets_of

pytestmark = pytest.mark.slow

SENTENCES = [
    "The three primary colours are red, blue and yellow.",
    "Water boils at one hundred degrees Celsius at sea level, and at less on a mountain.",
    "Photosynthesis is the process by which plants use sunlight to make food from carbon dioxide "
    "and water.",
    "The quick brown fox jumps over the lazy dog.",
    "no.",
    "In 1969, for the first time, two people walked on the Moon: Neil Armstrong and Buzz Aldrin "
    "spent about two and a half hours outside of their spacecraft, and came back with 21.5 kg of "
    "lunar material.",
    "Dear all,\n\nthe meeting on Thursday (3 pm) is cancelled :-(\n\n\tRegards, M.",
    "Ça dépend: «naïve» façade, Übermut, 東京 and 🙂.",
]
TEXTS = [*SENTENCES, " ".join(SENTENCES), SENTENCES[2] * 5]
TOLERANCES = {"fp32": 1e-4, "bf16": 0.3}
"""Nats, times the root of the number of a text's predicted tokens, over which errors add up as by
chance: sums in another order in fp32, numbers of 8 bits in bf16, with which a logit of 20 is known
to 1/16."""
TOTAL = {"fp32": 1e-5, "bf16": 0.03}
"""Nats a token, over all texts: what is left where there is nothing but chance."""


def texts_of(card: Path, texts: list[str]) -> TokenSet:
    ids = [np.array(each, np.int32) for each in encode(loading.open_tokenizer(card), texts)]
    names = np.array([f"t{place}" for place in range(len(ids))])
    domains = np.array(["forget", "retain"])[np.arange(len(ids)) % 2]
    lengths = np.array([len(each) for each in ids])
    return TokenSet(names, domains, np.concatenate(ids), offsets_of(lengths))


@pytest.fixture(scope="module")
def plain(smollm2: Path) -> np.ndarray:
    """NLL of each text in nats, from transformers alone."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2.parent)
    model = AutoModelForCausalLM.from_pretrained(smollm2.parent, dtype=torch.float32)
    sums = []
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].double()
        chosen = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(ids[1:])[:, None])
        sums.append(-float(chosen.sum()))
    return np.array(sums)


@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
def test_log_likelihoods_are_those_of_a_plain_loop(
    smollm2: Path,
    plain: np.ndarray,
    precision: str,
    batch_tokens: int,
    packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not packed:
        monkeypatch.setattr("mamushi.lm.perplexity.supports", lambda model: False)
    texts = texts_of(smollm2, TEXTS)
    accelerator = device.accelerator(precision)
    model = device.place(loading.open_model(smollm2), precision, accelerator.device)
    found = text_nll(model, texts, batch_tokens, accelerator)
    away = found.nll - plain
    assert (np.abs(away) < TOLERANCES[precision] * np.sqrt(found.tokens)).all()
    assert abs(away.sum()) < TOTAL[precision] * found.tokens.sum()


def test_a_sentence_is_likelier_than_its_words_shuffled(smollm2: Path, plain: np.ndarray) -> None:
    """What the file holds is the model, whole: one wrong tensor would make both alike."""
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(text.split())) for text in SENTENCES[:4]]
    texts = texts_of(smollm2, [*SENTENCES[:4], *shuffled])
    accelerator = device.accelerator("fp32")
    found = text_nll(loading.open_model(smollm2), texts, 4096, accelerator)
    means = found.nll / found.tokens
    assert means[:4].mean() < 4.0
    assert (means[4:] > means[:4] + 1.0).all()
