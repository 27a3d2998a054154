"""Each unlearner against a computation by hand: loss, mask, and steps of the optimizer."""

from itertools import cycle

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

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
    kind: str, family: str, forget: TokenSet, retain: TokenSet, changes: dict[str, float]
) -> tuple[PreTrainedModel, list[float], list[float]]:
    """The model after the steps, their losses and the norms of their gradients."""
    found, settings = start(family, layers=2), plugin("unlearner", kind).defaults | changes
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


@pytest.mark.parametrize(
    ("kind", "family", "changes"),
    [
        *((kind, family, {}) for kind, family in zip(KINDS, cycle(FAMILIES))),
        ("npo", "llama", {"beta": 0.7, "retain_weight": 0.4}),
        ("simnpo", "qwen2", {"gamma": 11.0}),
        ("simnpo", "llama", {"beta": 0.5, "gamma": -1.0, "retain_weight": 0.3}),
    ],
)
def test_steps_equal_those_by_hand(kind: str, family: str, changes: dict[str, float]) -> None:
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
