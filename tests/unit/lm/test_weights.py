"""Texts of which some tokens do not count, as where answers alone do or spans are left out: exact
against a padded loop, and all that trains or measures goes by the others."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from mamushi.lm import device, tokens
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll, token_nll
from mamushi.lm.tokens import TokenSet
from mamushi_extras.edits import editing
from mamushi_extras.evidence.unigram import Proxy, token_counts
from mamushi_extras.tokens.masks import split_by_text
from tests.support.gradients import exact, step_gradients
from tests.support.models import FAMILIES, TRAINING, VOCABULARY, model, token_set, training_of

CPU = device.accelerator("fp32")
SPANS = [
    {"id": "t003", "start": 0, "stop": 2},
    {"id": "t003", "start": 4, "stop": 5},
    {"id": "t006", "start": 1, "stop": 2},
]


def padded(family: str, texts: TokenSet) -> tuple[float, dict[str, torch.Tensor]]:
    """The step's loss and gradients from one padded batch with labels."""
    reference = exact(model(family))
    freeze(reference, training_of(TRAINING))
    ids = torch.zeros(len(texts), int(texts.lengths.max()), dtype=torch.int64)
    real = torch.arange(ids.shape[1])[None] < torch.from_numpy(texts.lengths)[:, None]
    ids[real] = torch.from_numpy(texts.tokens.astype(np.int64))
    logits = reference(input_ids=ids, attention_mask=real.long()).logits
    labels = torch.full_like(ids, -100)
    for row in range(len(texts)):
        for place in np.flatnonzero(texts.weights_of(row)):
            labels[row, place] = ids[row, place]
    loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    loss.backward()
    gradients = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    return float(loss.detach()), gradients


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_on_some_tokens_is_that_of_a_padded_loop(family: str) -> None:
    texts = tokens.mask_spans(token_set(9, longest=9, seed=4), SPANS)
    expected, gradients = padded(family, texts)
    for micro in (9, 2):
        loss, computed = step_gradients(family, micro, CPU, texts)
        assert loss == pytest.approx(expected, rel=1e-6)
        for name, gradient in gradients.items():
            torch.testing.assert_close(computed[name], gradient, rtol=1e-6, atol=1e-9)


def answered(seed: int = 0) -> TokenSet:
    """Texts of which about half of the tokens count, and of one none."""
    texts = token_set(seed=seed)
    weights = np.random.default_rng(seed).integers(0, 2, len(texts.tokens)).astype(np.float32)
    weights[texts.offsets[:-1]] = 0
    weights[texts.offsets[3] : texts.offsets[4]] = 0
    return replace(texts, weights=weights)


TEXTS = answered()
PREDICTED = [
    np.flatnonzero(TEXTS.weights_of(row) * (np.arange(len(TEXTS[row])) > 0))
    for row in range(len(TEXTS))
]


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_likelihoods_are_those_of_transformers_with_labels(family: str) -> None:
    language_model = model(family)
    measured = text_nll(language_model, TEXTS, 40, CPU)
    losses = split_by_text(token_nll(language_model, TEXTS, 40, CPU), TEXTS)
    assert measured.tokens.tolist() == [len(places) for places in PREDICTED]
    for row, places in enumerate(PREDICTED):
        assert len(losses[row]) == len(places)
        if not len(places):
            assert measured.nll[row] == 0
            continue
        ids = torch.from_numpy(TEXTS[row].astype(np.int64))[None]
        labels = torch.full_like(ids, -100)
        labels[0, places] = ids[0, places]
        with torch.no_grad():
            loss = float(language_model(ids, labels=labels).loss) * len(places)
        np.testing.assert_allclose(measured.nll[row], loss, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(losses[row].sum(), loss, rtol=1e-4, atol=1e-5)


def test_words_are_counted_where_they_are_predicted() -> None:
    assert TEXTS.counted.tolist() == [len(places) for places in PREDICTED]
    assert [TEXTS.places_of(row).tolist() for row in range(len(TEXTS))] == [
        places.tolist() for places in PREDICTED
    ]
    expected = np.concatenate([TEXTS[row][places] for row, places in enumerate(PREDICTED)])
    assert TEXTS.tokens[TEXTS.predicted].tolist() == expected.tolist()
    counts = np.bincount(expected, minlength=VOCABULARY)
    assert token_counts(TEXTS, VOCABULARY).sum(0).tolist() == counts.tolist()
    assert editing.fold_counts(TEXTS, 0, VOCABULARY).sum(0).tolist() == counts.tolist()
    options = {"seed": 0, "accelerator": CPU, "batch_tokens": 40}
    places = editing.read_places(model("llama"), TEXTS, 9999, **options)
    assert places.tokens.tolist() == expected.tolist() and len(places.folds) == len(expected)
    proxy = Proxy(TEXTS, token_set())
    at = np.concatenate(proxy.positions[:2])
    of_two = [TEXTS[row][TEXTS.weights_of(row) > 0] for row in (0, 1)]
    assert TEXTS.tokens[at].tolist() == np.concatenate(of_two).tolist()


def test_masks_and_unlearning_are_of_what_counts() -> None:
    row = int(TEXTS.counted.argmax())
    name, places = str(TEXTS.ids[row]), PREDICTED[row]
    spans = [{"id": name, "start": 1, "stop": int(places[1]) + 1}]
    left = tokens.mask_spans(TEXTS, spans)
    assert left.places_of(row).tolist() == places[2:].tolist()
    share = tokens.mass(left, TEXTS)
    assert share[row] == pytest.approx(1 - 2 / len(places))
    # Also of a text of which nothing counts: it takes as many steps as it took.
    assert np.delete(share, row).tolist() == [1.0] * (len(TEXTS) - 1)
    unlearned = tokens.keep_spans(TEXTS, spans)
    assert unlearned.ids.tolist() == [name]
    assert unlearned.places_of(0).tolist() == places[:2].tolist()
    both = tokens.concat([TEXTS, answered(1)])
    assert both.weights_of(len(TEXTS)).tolist() == answered(1).weights_of(0).tolist()
