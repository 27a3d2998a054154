"""Log-likelihoods of texts under SmolLM2 against a plain loop over transformers, a text at a time.

The loop feeds a text to the model as it is, in fp32, and sums log-softmax in float64. Here texts
are packed or padded, in batches of several sizes.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from mamushi.lm import device, loading
from mamushi.lm.perplexity import text_nll
from tests.support.real_texts import SENTENCES, token_set

pytestmark = pytest.mark.slow

TEXTS = [*SENTENCES, " ".join(SENTENCES), SENTENCES[2] * 5]
TOLERANCES = {"fp32": 1e-4, "bf16": 0.3}
"""Nats, times the root of the number of a text's predicted tokens, over which errors add up as by
chance: sums in another order in fp32, numbers of 8 bits in bf16, with which a logit of 20 is known
to 1/16."""
TOTAL = {"fp32": 1e-5, "bf16": 0.03}
"""Nats a token, over all texts: what is left where there is nothing but chance."""


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
@pytest.mark.parametrize("batch_tokens", [1, 4096])
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
        monkeypatch.setattr("mamushi.lm.batches.can_share", lambda model: False)
    texts = token_set(smollm2, TEXTS)
    accelerator = device.accelerator(precision)
    model = loading.place_model(loading.open_model(smollm2), precision, accelerator.device)
    found = text_nll(model, texts, batch_tokens, accelerator)
    away = found.nll - plain
    assert (np.abs(away) < TOLERANCES[precision] * np.sqrt(found.tokens)).all()
    assert abs(away.sum()) < TOTAL[precision] * found.tokens.sum()
