"""Unlearning of tokens and not of texts, against plain torch and against whole texts."""

from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.lm.batches import examples_of_step
from mamushi.lm.tokens import TokenSet, only_spans, subset
from mamushi.registry import plugins
from tests.support.models import FAMILIES, VOCABULARY
from tests.support.unlearning import run, start, texts_of, weights

KINDS = [name for name, kind in plugins("unlearner").items() if kind.trains]
RETAIN = texts_of("retain", 4, 2)
FORGET = texts_of("forget", 6, 1)
SPANS = {
    "forgett000": [(2, 4), (6, 7)],
    "forgett002": [(1, 3)],
    "forgett003": [(3, 4)],
    "forgett005": [(2, 3)],
}
SEED, SPECIAL = 3, frozenset({0, 7})


def summed(model: PreTrainedModel, texts: list[torch.Tensor], labels: list[torch.Tensor]) -> Any:
    """NLL of each text, summed over the labels that are not -100."""
    pairs = zip(texts, labels, strict=True)
    return torch.stack(
        [
            functional.cross_entropy(model(ids[None]).logits[0, :-1], at[1:], reduction="sum")
            for ids, at in pairs
        ]
    )


def labelled(texts: TokenSet, drawn: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Texts with a span in the order of the first step, and their labels: -100 outside of spans."""
    rows = [row for row in range(len(texts)) if texts.ids[row] in SPANS]
    every, all_labels = [], []
    for place, at in enumerate(examples_of_step(0, len(rows), 4, SEED)):
        ids = torch.from_numpy(texts[rows[at]].astype(np.int64))
        labels, right = torch.full_like(ids, -100), ids.clone()
        if drawn:
            others = np.random.default_rng([SEED, 0, place]).integers(0, VOCABULARY - 1, len(ids))
            other = torch.from_numpy(others) + (torch.from_numpy(others) >= ids)
            right = torch.where(torch.isin(ids, torch.tensor([*SPECIAL])), ids, other)
        for begin, end in SPANS[texts.ids[rows[at]]]:
            labels[begin:end] = right[begin:end]
        every.append(ids)
        all_labels.append(labels)
    return every, all_labels


@pytest.mark.parametrize(("kind", "family"), [*zip(KINDS, cycle(FAMILIES))])
def test_a_step_over_the_tokens_is_that_of_plain_torch(kind: str, family: str) -> None:
    training = {"gradient_clip": 1e9, "weight_decay": 0.0, "epsilon": 1e-2}
    listed = only_spans(FORGET, SPANS)
    assert listed.ids.tolist() == list(SPANS)
    changes = {"gamma": 2.0} if kind == "simnpo" else {}
    found, outcome = run(
        *(kind, start(family), listed, RETAIN),
        total=1,
        training=training,
        special=SPECIAL,
        micro=3,
        **changes,
    )
    model = start(family)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    free = {name: torch.ones_like(p) for name, p in trained.items()}
    texts, labels = labelled(FORGET, drawn=False)
    counts = torch.tensor([float((at[1:] >= 0).sum()) for at in labels])
    if kind == "salun":
        (summed(model, texts, labels).sum() / counts.sum()).backward()
        sizes = torch.cat([p.grad.abs().flatten() for p in trained.values()])
        limit = sizes.sort().values[len(sizes) // 2]
        free = {name: (p.grad.abs() >= limit).float() for name, p in trained.items()}
        model.zero_grad()
        texts, labels = labelled(FORGET, drawn=True)
    kept = [torch.from_numpy(RETAIN[row].astype(np.int64)) for row in range(len(RETAIN))]
    retain = summed(model, kept, kept).sum() / sum(len(ids) - 1 for ids in kept)
    lost = summed(model, texts, labels)
    loss = {
        "neggrad_plus": lambda: 0.85 * retain - 0.15 * lost.sum() / counts.sum(),
        "salun": lambda: 0.1 * lost.sum() / counts.sum() + 0.9 * retain,
        # At the start p is p_start, and -2/beta log sigmoid(0) has this value and gradient.
        "npo": lambda: 20 * np.log(2) - (lost - lost.detach()).mean() + retain,
        "simnpo": lambda: (
            -2 / 2.5 * functional.logsigmoid(2.5 * lost / counts - 2.0).mean() + retain
        ),
    }[kind]()
    loss.backward()
    assert outcome.log["loss"] == [pytest.approx(float(loss.detach()), rel=1e-5)]
    assert outcome.log["tokens"] == [int(counts.sum()) + sum(len(ids) - 1 for ids in kept)]
    expected = weights(model)
    for name, p in trained.items():
        # The first step of Adam: its second moment is the gradient's square.
        gradient = p.grad * free[name]
        expected[name] = expected[name] - 1e-3 * gradient / (gradient.abs() + 1e-2)
    for name, value in weights(found).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-6, msg=name)
    moved = weights(start(family))
    assert any((expected[name] - moved[name]).abs().max() > 1e-4 for name in trained)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_over_all_tokens_are_the_whole_texts_to_the_bit(kind: str) -> None:
    whole = subset(FORGET, np.flatnonzero(FORGET.lengths > 1))
    every = {name: [(1, len(whole[row]))] for row, name in enumerate(whole.ids.tolist())}
    texts, steps = run(kind, None, whole, RETAIN, micro=3)
    tokens, same_steps = run(kind, None, only_spans(whole, every), RETAIN, micro=3)
    for name in ("loss", "forget_loss", "gradient_norm", "tokens"):
        assert same_steps.log[name] == steps.log[name]
    assert same_steps.masked == steps.masked
    after = weights(tokens)
    assert all(torch.equal(value, after[name]) for name, value in weights(texts).items())


def test_a_limit_of_texts_is_moved_by_what_the_tokens_are_above_them() -> None:
    """All texts are in each step, so that the loss rises from a little below the limit."""
    listed, every = only_spans(FORGET, SPANS), {"training": {"batch_size": 9}}
    texts = subset(FORGET, np.flatnonzero(np.isin(FORGET.ids, listed.ids)))
    starts = [
        run("neggrad_plus", None, forget, RETAIN, total=1, **every)[1].log["forget_loss"][0]
        for forget in (texts, listed)
    ]
    assert abs(starts[1] - starts[0]) > 0.05
    for above, stopped in ((-0.001, 1), (0.001, 2)):
        changes = {"beta_ng": 0.1, "stop_forget_loss": starts[0] + above, **every}
        _, outcome = run("neggrad_plus", None, listed, RETAIN, total=3, whole=FORGET, **changes)
        assert outcome.stopped_at == stopped
