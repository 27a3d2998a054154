"""The null: between gold models of different seeds no attack finds anything, and between a model
that was trained on the texts and gold every one does."""

from typing import Any

import numpy as np
import pytest

from mamushi.lm import device
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, offsets_of, subset
from mamushi_extras.left.attacks import (
    ATTACKS,
    AttackedSeed,
    attack_auc,
    compare,
    likelihood_ratio,
    per_token,
    simple_scores,
)
from tests.support.models import VOCABULARY, model
from tests.support.training import train

SEEDS, TEXTS, LENGTH = 6, 60, 10
MEMBER = np.arange(2 * TEXTS) < TEXTS
TRAINING = {"batch_size": 20, "micro_batch_size": 20, "epochs": 6.0, "learning_rate": 1e-2}


def drawn(count: int, seed: int, domain: str) -> TokenSet:
    """Random texts, among which nothing but training can make a difference."""
    tokens = np.random.default_rng(seed).integers(0, VOCABULARY, count * LENGTH).astype(np.int32)
    ids = np.array([f"{domain}{i}" for i in range(count)], dtype=object)
    return TokenSet(ids, np.full(count, domain), tokens, offsets_of(np.full(count, LENGTH)))


def asked(language_model: Any, texts: TokenSet) -> dict[str, np.ndarray]:
    found = text_nll(language_model, texts, 2048, device.accelerator("fp32"))
    return {"nll": found.nll, "tokens": texts.lengths - 1.0}


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, np.ndarray]]]:
    """What gold and beta 0 models make of the same 60 members and 60 others, by seed."""
    forget, retain = drawn(2 * TEXTS, 0, "forget"), drawn(TEXTS, 1, "retain")
    both = TokenSet(
        np.concatenate([retain.ids, forget.ids[:TEXTS]]),
        np.concatenate([retain.domains, forget.domains[:TEXTS]]),
        np.concatenate([retain.tokens, forget.tokens[: TEXTS * LENGTH]]),
        offsets_of(np.full(2 * TEXTS, LENGTH)),
    )
    made: dict[str, list[dict[str, np.ndarray]]] = {
        "base": [asked(model("llama", layers=2), forget)]
    }
    for name, texts in (("gold", retain), ("beta0", both)):
        # Each seed has its texts in another order.
        orders = [np.random.default_rng(seed).permutation(len(texts)) for seed in range(SEEDS)]
        made[name] = [
            asked(train(model("llama", layers=2), subset(texts, order), **TRAINING)[0], forget)
            for order in orders
        ]
    return made


def scores(found: dict[str, list[dict[str, np.ndarray]]], name: str, seed: int) -> Any:
    """All attacks on one model; its shadow models are those of all other seeds."""
    one = found[name][seed]
    outside, inside = (
        np.array([per_token(each) for s, each in enumerate(found[shadow]) if s != seed])
        for shadow in ("gold", "beta0")
    )
    ratio = likelihood_ratio(per_token(one), outside, inside, MEMBER)
    return {**simple_scores(one, found["base"][0]), "likelihood_ratio": ratio}


def compared_with_gold(
    found: dict[str, list[dict[str, np.ndarray]]], name: str, attack: str
) -> Any:
    """Models of the even seeds beside gold models of the odd ones."""
    pairs = [
        (scores(found, name, seed)[attack], scores(found, "gold", seed + 1)[attack])
        for seed in range(0, SEEDS, 2)
    ]
    return compare([AttackedSeed(*pair, MEMBER, ~MEMBER) for pair in pairs], attack_auc)


@pytest.mark.parametrize("attack", ATTACKS)
def test_gold_models_are_not_told_apart_and_those_that_saw_the_texts_are(
    found: Any, attack: str
) -> None:
    null = compared_with_gold(found, "gold", attack)
    for each in (null.model, null.gold):
        assert each.low <= 0.5 <= each.high
    assert null.difference.low <= 0 <= null.difference.high
    # And not because anything would do: a fifth to either side of chance at most.
    assert null.model.high - null.model.low < 0.4

    trained = compared_with_gold(found, "beta0", attack)
    assert trained.difference.low > 0
    assert trained.model.low > 0.5
