"""Each unlearner against a computation by hand: loss, mask, and steps of the optimizer."""

from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.lm import training
from mamushi.lm.batches import examples_of_step
from mamushi.lm.tokens import TokenSet
from mamushi.registry import load, plugin
from mamushi.unlearning.objective import Nll
from tests.support.models import FAMILIES, VOCABULARY
from tests.support.unlearning import KINDS, run, start, texts_of, weights

# A large epsilon, because Adam is blind to the gradient's scale otherwise, and so to the clip.
TRAINING = {"epsilon": 1e-2, "weight_decay": 0.1, "gradient_clip": 0.05}
RATE, STEPS, SEED, BATCH = 0.02, 3, 3, 4
SPECIAL = frozenset({0, 7})


# --- by hand ----------------------------------------------------------------------------------


def text_nll(
    language_model: PreTrainedModel, tokens: NDArray[np.int32], labels: NDArray[np.int32]
) -> torch.Tensor:
    """NLL of a text's labels, token by token, without batch or padding."""
    logits = language_model(torch.from_numpy(tokens.astype(np.int64))[None]).logits[0].double()
    total = torch.zeros((), dtype=torch.float64)
    for place in range(len(tokens) - 1):
        odds = logits[place]
        total = total + torch.log(torch.exp(odds).sum()) - odds[int(labels[place + 1])]
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


def mean_nll(
    language_model: PreTrainedModel, pairs: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
) -> torch.Tensor:
    tokens = sum(len(tokens) - 1 for tokens, _ in pairs)
    return sum(text_nll(language_model, *pair) for pair in pairs) / tokens


def log_likelihoods(
    language_model: PreTrainedModel, pairs: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
) -> torch.Tensor:
    return torch.stack([-text_nll(language_model, *pair) for pair in pairs])


def loss_by_hand(
    kind: str,
    language_model: PreTrainedModel,
    start_model: PreTrainedModel,
    forget: list[tuple[NDArray[np.int32], NDArray[np.int32]]],
    retain: list[tuple[NDArray[np.int32], NDArray[np.int32]]],
    settings: dict[str, float],
) -> torch.Tensor:
    """The formulas of the papers."""
    kept = mean_nll(language_model, retain)
    if kind == "neggrad_plus":
        return 0.85 * kept - 0.15 * mean_nll(language_model, forget)
    if kind == "salun":
        return 0.1 * mean_nll(language_model, forget) + 0.9 * kept
    beta, log_p = settings["beta"], log_likelihoods(language_model, forget)
    if kind == "npo":
        ratio = torch.exp(log_p - log_likelihoods(start_model, forget).detach())
        # Equation 3 of Zhang et al. (2024), in its form without a sigmoid.
        lost = (2 / beta) * torch.log(1 + ratio**beta).mean()
    else:
        lengths = torch.tensor([len(tokens) - 1 for tokens, _ in forget], dtype=torch.float64)
        odds = torch.exp(beta / lengths * log_p + settings["gamma"])
        lost = (2 / beta) * torch.log(1 + odds).mean()
    return lost + settings["retain_weight"] * kept


def rows_of(texts: TokenSet, step: int, seed: int) -> list[NDArray[np.int32]]:
    """Every text of a step that predicts something, in the places of the step."""
    batch = min(BATCH, len(texts))
    return [texts[row] for row in examples_of_step(step, len(texts), batch, seed)]


def mask_by_hand(language_model: PreTrainedModel, forget: TokenSet) -> dict[str, torch.Tensor]:
    """The larger half by a full sort of the gradient of all forget texts."""
    language_model.zero_grad()
    pairs = [(forget[row], forget[row]) for row in range(len(forget))]
    mean_nll(language_model, pairs).backward()
    found = {n: p.grad.abs() for n, p in language_model.named_parameters() if p.requires_grad}
    language_model.zero_grad()
    flat = np.concatenate([value.flatten().numpy() for value in found.values()])
    limit = np.sort(flat)[::-1][len(flat) - len(flat) // 2 - 1]
    return {name: value >= float(limit) for name, value in found.items()}


def unlearned_by_hand(
    kind: str, family: str, forget: TokenSet, retain: TokenSet
) -> tuple[PreTrainedModel, list[float], list[float]]:
    """The model after the steps, their losses and the norms of their gradients."""
    found, settings = start(family, layers=2), plugin("unlearner", kind).defaults
    start_model = start(family, layers=2)
    trained = {name: p for name, p in found.named_parameters() if p.requires_grad}
    masks = mask_by_hand(found, forget) if kind == "salun" else {}
    moments = {name: torch.zeros_like(p) for name, p in trained.items()}
    losses, norms = [], []
    retain_seed = int(np.random.SeedSequence([SEED, 1]).generate_state(1)[0])
    for step in range(STEPS):
        lost = [
            (tokens, labels_of(kind, tokens, step, place))
            for place, tokens in enumerate(rows_of(forget, step, SEED))
        ]
        kept = [(tokens, tokens) for tokens in rows_of(retain, step, retain_seed)]
        lost, kept = ([p for p in pairs if len(p[0]) > 1] for pairs in (lost, kept))
        found.zero_grad()
        loss = loss_by_hand(kind, found, start_model, lost, kept, settings)
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
    return found, losses, norms


@pytest.mark.parametrize(("kind", "family"), [*zip(KINDS, cycle(FAMILIES))])
def test_steps_equal_those_by_hand(kind: str, family: str) -> None:
    forget, retain = texts_of("forget", 7, 1), texts_of("retain", 6, 2)
    found, outcome = run(
        kind,
        start(family, layers=2),
        forget,
        retain,
        total=STEPS,
        training=TRAINING,
        special=SPECIAL,
        learning_rate=RATE,
        micro=3,
    )
    expected, losses, norms = unlearned_by_hand(kind, family, forget, retain)
    np.testing.assert_allclose(outcome.log["loss"], losses, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outcome.log["gradient_norm"], norms, rtol=1e-3)
    # The clip is at work in every step, and the weights have moved by far more than the tolerance.
    assert min(norms) > 2 * TRAINING["gradient_clip"]
    before, after = weights(start(family, layers=2)), weights(expected)
    moved = max(float((after[name] - before[name]).abs().max()) for name in after)
    assert moved > 3e-3
    for name, value in weights(found).items():
        torch.testing.assert_close(value, after[name], rtol=1e-3, atol=2e-5, msg=name)


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("neggrad_plus", {"beta_ng": 0.4}, 0.4 * 3.0 - 0.6 * 2.0),
        ("salun", {"forget_weight": 0.3, "retain_weight": 0.5}, 0.3 * 2.0 + 0.5 * 3.0),
    ],
)
def test_every_weight_has_its_place(kind: str, changes: dict[str, float], expected: float) -> None:
    forget = Nll(torch.tensor([2.0, 6.0]), torch.tensor([1.0, 3.0]), 4, 2)
    retain = Nll(torch.tensor([6.0]), torch.tensor([2.0]), 2, 1)
    settings = plugin("unlearner", kind).defaults | changes
    found = load("unlearner", kind).loss(forget, retain, settings)
    assert float(found) == pytest.approx(expected, rel=1e-6)


# --- against the published losses, in double precision -----------------------------------------


class Seen:
    """What each step of a run began with, and its gradients."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.weights: list[dict[str, torch.Tensor]] = []
        self.gradients: list[dict[str, torch.Tensor | None]] = []
        gradient = training.gradient

        def watched(objective: training.Objective, *further: Any) -> torch.Tensor:
            self.weights.append(weights(objective.model))
            losses = gradient(objective, *further)
            named = objective.model.named_parameters()
            self.gradients.append({n: p.grad.clone() for n, p in named if p.grad is not None})
            return losses

        monkeypatch.setattr(training, "gradient", watched)


def pairs_of(texts: TokenSet, step: int, seed: int) -> list[Any]:
    return [(tokens, tokens) for tokens in rows_of(texts, step, seed) if len(tokens) > 1]


FORGET, RETAIN = texts_of("forget", 7, 1), texts_of("retain", 6, 2)


def seen_in(
    monkeypatch: pytest.MonkeyPatch, kind: str, **changes: float
) -> tuple[Seen, list[float]]:
    """What two steps of a run in double precision begin with, and their losses."""
    seen = Seen(monkeypatch)
    _, outcome = run(
        kind,
        start(layers=3).double(),
        FORGET,
        RETAIN,
        total=2,
        training=TRAINING,
        learning_rate=RATE,
        micro=3,
        **changes,
    )
    return seen, outcome.log["loss"]


def by_hand(seen: Seen, step: int, loss: Any) -> tuple[float, dict[str, torch.Tensor]]:
    """The value and the gradients of a loss of (model, start model, forget, retain) in a step."""
    found, start_model = start(layers=3).double(), start(layers=3).double()
    found.load_state_dict(seen.weights[step])
    retain_seed = int(np.random.SeedSequence([SEED, 1]).generate_state(1)[0])
    texts = pairs_of(FORGET, step, SEED), pairs_of(RETAIN, step, retain_seed)
    value = loss(found, start_model, *texts)
    value.backward()
    named = found.named_parameters()
    return float(value.detach()), {n: p.grad for n, p in named if p.grad is not None}


def assert_same_gradients(
    one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float
) -> None:
    assert one.keys() == other.keys()
    size = max(float(gradient.abs().max()) for gradient in other.values())
    for name, gradient in other.items():
        assert float((one[name] - gradient).abs().max()) < tolerance * size, name


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("npo", {}),
        ("npo", {"beta": 0.7, "retain_weight": 0.4}),
        ("simnpo", {"gamma": 11.0}),
        ("simnpo", {"beta": 0.5, "gamma": -1.0, "retain_weight": 0.3}),
    ],
)
def test_values_and_gradients_are_those_of_the_published_loss(
    kind: str, changes: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second step, when the model is no longer the one at the start."""
    seen, losses = seen_in(monkeypatch, kind, **changes)
    settings = plugin("unlearner", kind).defaults | changes
    for step in range(2):
        value, expected = by_hand(
            seen, step, lambda *given: loss_by_hand(kind, *given, settings=settings)
        )
        assert losses[step] == pytest.approx(value, rel=1e-6)
        assert_same_gradients(seen.gradients[step], expected, 1e-6)


def test_towards_beta_0_npo_is_gradient_ascent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ascent on the log-likelihood of a text; the distance from it shrinks with beta."""
    away = {}
    for beta in (1e-2, 1e-4):
        with monkeypatch.context() as patch:
            seen, _ = seen_in(patch, "npo", beta=beta, retain_weight=0.0)
        _, ascent = by_hand(seen, 1, lambda m, _, lost, kept: log_likelihoods(m, lost).mean())
        size = sum(float((g**2).sum()) for g in ascent.values()) ** 0.5
        gaps = (seen.gradients[1][name] - g for name, g in ascent.items())
        away[beta] = sum(float((gap**2).sum()) for gap in gaps) ** 0.5 / size
    assert away[1e-4] < 1e-3
    assert away[1e-2] > 30 * away[1e-4]


# --- masks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_masked_weights_stay_bit_equal_and_the_others_move(family: str, precision: str) -> None:
    """A full run of SalUn with weight decay on."""
    found, outcome = run(
        "salun",
        start(family, precision),
        precision=precision,
        total=13,
        training={"weight_decay": 0.5},
    )
    before = weights(start(family, precision))
    trained = {name for name, p in found.named_parameters() if p.requires_grad}
    n = sum(before[name].numel() for name in trained)
    # Weights that equal the threshold are free, too.
    assert n // 2 - n // 200 <= (outcome.masked or 0) <= n // 2
    same = {name: value == before[name] for name, value in weights(found).items()}
    # Bit-equality: not even the sign of a zero has changed.
    for name, value in weights(found).items():
        kept = same[name]
        assert torch.equal(torch.signbit(value[kept]), torch.signbit(before[name][kept]))
    held = sum(int(same[name].sum()) for name in trained)
    # A weight that may move can by chance come back to where it was, and one of 0 has no decay.
    assert 0 <= held - (outcome.masked or 0) <= n // 200
    for name, parameter in found.named_parameters():
        if not parameter.requires_grad:
            assert torch.equal(parameter, before[name])
