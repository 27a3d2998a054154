"""What frozen blocks made of texts, read from disk: the same numbers as by the whole model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.cli import main
from mamushi.io.files import read_json
from mamushi.lm import device, loading
from mamushi.lm.batches import batch_of
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, concat, subset
from mamushi_extras.speed.trunk import use_states
from tests.support.models import FAMILIES, model, training_of
from tests.support.stage_files import (
    measure,
    unlearn_words,
    unlearning,
    write_start,
)
from tests.support.unlearning import BLOCKS
from tests.support.unlearning import texts_of as random_texts

TRAINED = BLOCKS["trained_blocks"]
# Relative to the largest value, where the batches that read states are not those that wrote them,
# so that sums round in another order. bf16 has 8 bits: a unit in the last place is 0.4 to 0.8%.
TOLERANCE = {"fp32": 1e-6, "bf16": 3e-2}
# In a mean over tokens such errors cancel.
MEAN = {"fp32": 1e-6, "bf16": 1e-3}
RANKED, HELD_OUT = random_texts("ranked", 20, 1, 20), random_texts("hélas", 9, 2, 20)
OTHERS = random_texts("other", 5, 3, 20)


def start_model(family: str, precision: str) -> PreTrainedModel:
    """A model as it lies in an unlearning run: its last blocks in fp32, all else frozen in the
    forward precision."""
    language_model = model(family, layers=4)
    freeze(language_model, training_of(BLOCKS))
    return loading.place_model(language_model, precision, torch.device("cpu"))


def step(
    language_model: PreTrainedModel, texts: TokenSet, precision: str
) -> tuple[float, dict[str, Tensor]]:
    """The NLL of one batch, and its gradients."""
    batch = batch_of(texts, np.arange(len(texts)), torch.device("cpu"), shared=True)
    with device.accelerator(precision).autocast():
        loss = TokenLoss(language_model.train())(batch)
    loss.backward()
    named = language_model.named_parameters()
    gradients = {name: p.grad.clone() for name, p in named if p.grad is not None}
    language_model.zero_grad(set_to_none=True)
    return float(loss.detach()), gradients


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_steps_and_nll_are_those_of_the_whole_model(
    family: str, precision: str, tmp_path: Path
) -> None:
    plain, skipping = (start_model(family, precision) for _ in range(2))
    accelerator = device.accelerator(precision)
    use_states(tmp_path / "states", skipping, concat([RANKED, HELD_OUT]), TRAINED, 60, accelerator)
    # Neither the batches of the file nor their order, and lengths from 1 to 20.
    batch = subset(RANKED, np.array([RANKED.lengths.argmin(), 7, RANKED.lengths.argmax(), 3, 12]))
    (loss, gradients), (other, others) = (step(m, batch, precision) for m in (plain, skipping))
    assert other == pytest.approx(loss, rel=MEAN[precision])
    assert list(others) == list(gradients)
    for name, gradient in gradients.items():
        scale = float(gradient.abs().max())
        assert float((others[name] - gradient).abs().max()) <= TOLERANCE[precision] * scale
    nll, read = (text_nll(m, HELD_OUT, 33, accelerator).nll for m in (plain, skipping))
    np.testing.assert_allclose(read, nll, rtol=10 * TOLERANCE[precision], atol=1e-6)
    # Texts that are not in the file take the whole way.
    nll, read = (text_nll(m, OTHERS, 33, accelerator).nll for m in (plain, skipping))
    assert (read == nll).all()


def test_jobs_of_a_workflow_share_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_start(tmp_path)
    trunks = tmp_path / "trunks"

    def ask(name: str, **changes: Any) -> list[float]:
        out = tmp_path / name
        assert main(unlearn_words(tmp_path, out, unlearning("salun", **changes))) == 0
        arm = {"trained": tmp_path / "start.safetensors", "unlearned": out / "trained.safetensors"}
        trains = changes | {"trained_blocks": 2, "max_length": 12}
        return measure(tmp_path, out, {"trains": trains}, **arm)

    plain = ask("plain")
    monkeypatch.setenv("MAMUSHI_TRUNKS", f'"{trunks}"')
    ask("full", method="full")
    assert not trunks.exists()
    np.testing.assert_allclose(ask("cached"), plain, rtol=1e-3)
    assert len([path for path in trunks.iterdir() if path.suffix != ".lock"]) == 1
    # They are no input of what is written.
    assert read_json(tmp_path / "plain/card.json") == read_json(tmp_path / "cached/card.json")
