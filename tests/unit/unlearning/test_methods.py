"""Each unlearner against a computation by hand: loss, mask, and steps of the optimizer."""

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.lm.batches import examples_of_step
from mamushi.lm.tokens import TokenSet, keep_spans
from mamushi.registry import plugin
from tests.support.models import FAMILIES, VOCABULARY
from tests.support.unlearning import KINDS, run, start, texts_of, weights

# A large epsilon, because Adam is blind to the gradient's scale otherwise, and so to the clip.
TRAINING = {"epsilon": 1e-2, "weight_decay": 0.1, "gradient_clip": 0.05}
RATE, STEPS, SEED, BATCH = 0.02, 3, 3, 4
SPECIAL = frozenset({0, 7})
SPANS = [
    {"id": f"forgett00{text}", "start": start, "stop": stop}
    for text, start, stop in ((0, 2, 4), (0, 6, 7), (2, 1, 3), (3, 3, 4), (5, 2, 3))
]


class Text(NamedTuple):
    """A text of a step, what is to be predicted in it, and where."""

    tokens: NDArray[np.int32]
    labels: NDArray[np.int32]
    places: NDArray[np.int64]


def text_nll(language_model: PreTrainedModel, text: Text) -> torch.Tensor:
    """NLL of a text's labels, token by token, without batch or padding."""
    ids = torch.from_numpy(text.tokens.astype(np.int64))[None]
    logits = language_model(ids).logits[0].double()
    total = torch.zeros((), dtype=torch.float64)
    for place in text.places:
        odds = logits[place - 1]
        total = total + torch.log(torch.exp(odds).sum()) - odds[int(text.labels[place])]
    return total


def labels_of(kind: str, tokens: NDArray[np.int32], step: int, place: int) -> NDArray[np.int32]:
    """The forget labels: for SalUn any token but the true one, all equally likely."""
    if kind != "salun":
        return tokens
    rng = np.random.default_rng([SEED, step, place])
    drawn = rng.integers(0, VOCABULARY - 1, size=len(tokens))
    labels = tokens.copy()
    for i, token in enumerate(tokens):
        if int(token) not in SPECIAL:
            labels[i] = [other for other in range(VOCABULARY) if other != token][drawn[i]]
    return labels


def mean_nll(language_model: PreTrainedModel, texts: list[Text]) -> torch.Tensor:
    tokens = sum(len(text.places) for text in texts)
    return sum(text_nll(language_model, text) for text in texts) / tokens


def log_likelihoods(language_model: PreTrainedModel, texts: list[Text]) -> torch.Tensor:
    return torch.stack([-text_nll(language_model, text) for text in texts])


def loss_by_hand(
    kind: str,
    language_model: PreTrainedModel,
    start_model: PreTrainedModel,
    forget: list[Text],
    retain: list[Text],
    settings: dict[str, float],
) -> torch.Tensor:
    """The formulas of the papers."""
    of_retain = mean_nll(language_model, retain)
    if kind == "neggrad_plus":
        return 0.85 * of_retain - 0.15 * mean_nll(language_model, forget)
    if kind == "salun":
        return 0.1 * mean_nll(language_model, forget) + 0.9 * of_retain
    beta, log_p = settings["beta"], log_likelihoods(language_model, forget)
    if kind == "npo":
        ratio = torch.exp(log_p - log_likelihoods(start_model, forget).detach())
        # Equation 3 of Zhang et al. (2024), in its form without a sigmoid.
        lost = (2 / beta) * torch.log(1 + ratio**beta).mean()
    else:
        lengths = torch.tensor([len(text.places) for text in forget], dtype=torch.float64)
        odds = torch.exp(beta / lengths * log_p + settings["gamma"])
        lost = (2 / beta) * torch.log(1 + odds).mean()
    return lost + settings["retain_weight"] * of_retain


def texts_by_hand(texts: TokenSet, step: int, seed: int, kind: str = "") -> list[Text]:
    """Every text of a step that predicts something, with the labels of its place in the step."""
    rows = examples_of_step(step, len(texts), min(BATCH, len(texts)), seed)
    every = [
        Text(texts[row], labels_of(kind, texts[row], step, place), texts.places_of(row))
        for place, row in enumerate(rows)
    ]
    return [text for text in every if len(text.places)]


def mask_by_hand(language_model: PreTrainedModel, forget: TokenSet) -> dict[str, torch.Tensor]:
    """The larger half by a full sort of the gradient of all forget texts."""
    language_model.zero_grad()
    rows = range(len(forget))
    texts = [Text(forget[row], forget[row], forget.places_of(row)) for row in rows]
    mean_nll(language_model, texts).backward()
    sizes = {n: p.grad.abs() for n, p in language_model.named_parameters() if p.requires_grad}
    language_model.zero_grad()
    flat = np.concatenate([value.flatten().numpy() for value in sizes.values()])
    limit = np.sort(flat)[::-1][len(flat) - len(flat) // 2 - 1]
    return {name: value >= float(limit) for name, value in sizes.items()}


def unlearned_by_hand(
    kind: str, family: str, forget: TokenSet, retain: TokenSet, changes: dict[str, float]
) -> tuple[PreTrainedModel, list[float], list[float]]:
    """The model after the steps, their losses and the norms of their gradients."""
    moving, settings = start(family, layers=2), plugin("unlearner", kind).defaults | changes
    start_model = start(family, layers=2)
    trained = {name: p for name, p in moving.named_parameters() if p.requires_grad}
    masks = mask_by_hand(moving, forget) if kind == "salun" else {}
    moments = {name: torch.zeros_like(p) for name, p in trained.items()}
    losses, norms = [], []
    retain_seed = int(np.random.SeedSequence([SEED, 1]).generate_state(1)[0])
    for step in range(STEPS):
        lost = texts_by_hand(forget, step, SEED, kind)
        retained = texts_by_hand(retain, step, retain_seed)
        moving.zero_grad()
        loss = loss_by_hand(kind, moving, start_model, lost, retained, settings)
        loss.backward()
        losses.append(float(loss.detach()))
        gradients = {n: p.grad * masks.get(n, torch.tensor(1.0)) for n, p in trained.items()}
        norm = sum(float((g.double() ** 2).sum()) for g in gradients.values()) ** 0.5
        norms.append(norm)
        scale = min(1.0, TRAINING["gradient_clip"] / (norm + 1e-6))
        with torch.no_grad():
            for name, parameter in trained.items():
                gradient = gradients[name] * scale
                moments[name] = 0.999 * moments[name] + 0.001 * gradient**2
                second = moments[name] / (1 - 0.999 ** (step + 1))
                # Without a first moment, Adam goes along the gradient itself.
                move = RATE * gradient / (second.sqrt() + TRAINING["epsilon"])
                target = parameter * (1 - RATE * TRAINING["weight_decay"]) - move
                allowed = masks.get(name, torch.ones_like(parameter, dtype=torch.bool))
                parameter.copy_(torch.where(allowed, target, parameter))
    return moving, losses, norms


@pytest.mark.parametrize(
    ("kind", "family", "changes", "spans"),
    [
        *((kind, family, {}, []) for kind, family in zip(KINDS, cycle(FAMILIES))),
        *((kind, "llama", {}, SPANS) for kind in KINDS if kind != "simnpo"),
        ("npo", "llama", {"beta": 0.7, "retain_weight": 0.4}, []),
        ("simnpo", "qwen2", {"gamma": 11.0}, SPANS),
        ("simnpo", "llama", {"beta": 0.5, "gamma": -1.0, "retain_weight": 0.3}, []),
    ],
)
def test_steps_equal_those_by_hand(
    kind: str, family: str, changes: dict[str, float], spans: list[dict[str, Any]]
) -> None:
    """Of whole texts, and of the tokens in spans alone."""
    forget, retain = texts_of("forget", 7, 1), texts_of("retain", 6, 2)
    if spans:
        forget = keep_spans(forget, spans)
    unlearned, outcome = run(
        kind,
        start(family, layers=2),
        forget,
        retain,
        total=STEPS,
        training=TRAINING,
        special=SPECIAL,
        learning_rate=RATE,
        micro=3,
        **changes,
    )
    expected, losses, norms = unlearned_by_hand(kind, family, forget, retain, changes)
    np.testing.assert_allclose(outcome.log["loss"], losses, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outcome.log["gradient_norm"], norms, rtol=1e-3)
    # The clip is at work in every step, and the weights have moved by far more than the tolerance.
    assert min(norms) > 2 * TRAINING["gradient_clip"]
    before, after = weights(start(family, layers=2)), weights(expected)
    moved = max(float((after[name] - before[name]).abs().max()) for name in after)
    assert moved > 3e-3
    for name, value in weights(unlearned).items():
        torch.testing.assert_close(value, after[name], rtol=1e-3, atol=2e-5, msg=name)


def test_masked_weights_stay_bit_equal_and_the_others_move() -> None:
    """A full run of SalUn with weight decay on."""
    changes = {"precision": "bf16", "training": {"weight_decay": 0.5}}
    unlearned, outcome = run("salun", start("llama", "bf16"), total=13, **changes)
    before = weights(start("llama", "bf16"))
    trained = {name for name, p in unlearned.named_parameters() if p.requires_grad}
    n, same = sum(before[name].numel() for name in trained), 0
    for name, value in weights(unlearned).items():
        equal = value == before[name]
        # Not even the sign of a zero has changed.
        assert torch.equal(torch.signbit(value[equal]), torch.signbit(before[name][equal]))
        assert name in trained or equal.all()
        same += int(equal.sum()) if name in trained else 0
    # Weights that equal the threshold are free, too; one that may move can come back by chance.
    assert n // 2 - n // 200 <= (outcome.masked or 0) <= n // 2
    assert 0 <= same - (outcome.masked or 0) <= n // 200
