"""Influence at the weights of a trained model, against gradients of single tokens and batches."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm import device
from mamushi.lm.batches import examples_of_step
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet, subset
from mamushi_extras.influence.measuring import (
    Targets,
    draw_by_fold,
    measure_at_weights,
)
from mamushi_extras.tokens.masks import TokenPool
from tests.extras.influence.test_measuring import (
    EXECUTION,
    HOW,
    OTHERS,
    TEXTS,
    apart,
    flat,
    gradient_of,
    nll,
)
from tests.support.gradients import exact
from tests.support.models import model, token_set, training_of

BATCHES, MOST, SEED = 3, 3, 1
NONE = subset(TEXTS, np.array([], np.int64))


def measured(
    language_model: PreTrainedModel, others: TokenSet = NONE
) -> tuple[Any, dict[int, Targets]]:
    freeze(language_model, training_of(HOW))
    accelerator = device.accelerator("fp32")
    pool = TokenPool(TEXTS, others)
    draws = {"targets": MOST, "batches": BATCHES, "seed": SEED}
    settings = SimpleNamespace(training=training_of(HOW), **draws)
    job: Any = SimpleNamespace(settings=settings, execution=EXECUTION)
    values, _ = measure_at_weights(language_model, pool, job, accelerator)
    return values, draw_by_fold(pool, MOST, SEED)[1]


def mean_gradient(language_model: PreTrainedModel, texts: TokenSet) -> torch.Tensor:
    """Of the mean NLL over all tokens, from the gradients of single texts."""
    sums = [
        gradient_of(language_model, nll(language_model, texts[row]).sum())
        for row in range(len(texts))
        if len(texts[row]) > 1
    ]
    return torch.stack(sums).sum(0) / float(np.maximum(texts.lengths - 1, 0).sum())


def expected(
    language_model: PreTrainedModel, folds: np.ndarray[Any, Any], targets: dict[int, Targets]
) -> np.ndarray[Any, Any]:
    """Of each predicted token the rate times its gradient's inner product with its direction."""
    batch = int(HOW["batch_size"])
    rows = [examples_of_step(step, len(TEXTS), batch, SEED) for step in range(BATCHES)]
    squares = [mean_gradient(language_model, subset(TEXTS, part)) ** 2 for part in rows]
    moment = torch.stack(squares).mean(0)
    along = {}
    for fold, of in targets.items():
        means = [mean_gradient(language_model, of[domain]) for domain in (FORGET, RETAIN)]
        along[fold] = (means[0] - means[1]) / (moment.sqrt() + 1e-8)
        along[fold][moment == 0] = 0
    found: list[float] = []
    for row, fold in enumerate(folds):
        losses = nll(language_model, TEXTS[row]) if len(TEXTS[row]) > 1 else []
        gradients = (gradient_of(language_model, loss, again=True) for loss in losses)
        found += [float(gradient @ along[fold]) for gradient in gradients]
    return float(HOW["learning_rate"]) * np.array(found)


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
def test_it_is_the_slope_of_each_tokens_loss_by_the_moment_of_the_texts(
    family: str,
) -> None:
    language_model = exact(model(family))
    before = flat(p.detach().clone() for p in language_model.parameters())
    values, targets = measured(language_model)
    assert torch.equal(flat(language_model.parameters()), before)
    assert all(p.grad is None for p in language_model.parameters())
    folds = draw_by_fold(TokenPool(TEXTS, NONE), MOST, SEED)[0]
    assert {*folds} == {*targets} == {0, 1}
    assert apart(values, expected(language_model, folds, targets)) < 1e-3


def test_texts_of_the_contamination_section_are_the_targets_where_there_are_any() -> None:
    language_model = exact(model("llama"))
    values, targets = measured(language_model, others=OTHERS)
    assert {*targets} == {0}
    of_section = {text.tobytes() for text in (OTHERS[row] for row in range(len(OTHERS)))}
    drawn = [of[row].tobytes() for of in targets[0].values() for row in range(len(of))]
    assert len(drawn) == 2 * MOST and {*drawn} <= of_section
    nowhere = np.zeros(len(TEXTS), np.int16)
    assert apart(values, expected(language_model, nowhere, targets)) < 1e-3


def test_no_text_nor_another_of_its_group_is_its_own_target() -> None:
    texts = token_set(60)
    groups = np.arange(60) // 3  # of both domains
    for seed in range(20):
        for codes in (None, groups):
            folds, drawn_targets = draw_by_fold(TokenPool(texts, NONE, codes), 99, seed)
            for fold, targets in drawn_targets.items():
                scored = {*texts.ids[folds == fold]}
                drawn = {name for of in targets.values() for name in of.ids}
                assert scored and drawn and not scored & drawn
                assert {*targets[FORGET].domains} == {FORGET}
                if codes is not None:
                    of_group = dict(zip(texts.ids, codes, strict=True))
                    assert not {of_group[x] for x in scored} & {of_group[x] for x in drawn}
