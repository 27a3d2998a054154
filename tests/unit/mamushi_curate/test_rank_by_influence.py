"""``mamushi.rank`` by influence: a model of one's own, whose training nobody has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mamushi
from mamushi.lm import device, tiny
from mamushi.lm.batches import steps
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet, encode, offsets_of
from mamushi.lm.training import finetune
from mamushi.registry import load, plugin
from mamushi.selection.metrics import auc
from mamushi.selection.selectors import mamushi_lr
from tests.support.lab import SHAPE
from tests.support.models import TRAINING

COUNT = 40
WORDS = [f"{a}{b}" for a in "bcdfghklmn" for b in ("ala", "omo", "uru", "eve")]


def world() -> pd.DataFrame:
    """Half of the forget texts walk through ten words in an order that one can learn, which teaches
    the domain; the others are words by chance. Retain texts walk through ten others."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(COUNT):
        # Four steps from each of five words: no two texts are near copies.
        starts = rng.integers(10, size=(3, 5))
        walk = ((starts[..., None] + np.arange(4)) % 10).reshape(3, -1)
        texts = {
            "teaches": [WORDS[step] for step in walk[0]],
            "noise": rng.choice(WORDS, 20),
            "kept": [WORDS[30 + step] for step in walk[1]],
            "kept too": [WORDS[30 + step] for step in walk[2]],
        }
        rows += [
            {"name": f"{kind} {number}", "kind": kind, "body": f"{' '.join(words)} {number}"}
            for kind, words in texts.items()
        ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0, ignore_index=True)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return world()


@pytest.fixture(scope="module")
def ours(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that was trained on the texts."""
    folder = tmp_path_factory.mktemp("ours")
    model, tokenizer = tiny.build(SHAPE, frame["body"].tolist(), seed=0)
    ids = [np.array(text, np.int32) for text in encode(tokenizer, frame["body"].tolist())]
    texts = TokenSet(
        frame["name"].to_numpy(object),
        frame["kind"].to_numpy(object),
        np.concatenate(ids),
        offsets_of(np.array([len(text) for text in ids])),
    )
    how = {**TRAINING, "epochs": 4.0, "batch_size": 16, "learning_rate": 1e-2}
    freeze(model, {**how, "method": "full"})
    total = steps(len(texts), 16, 4.0)
    finetune(model, texts, how, total=total, seed=0, accelerator=device.accelerator("fp32"))
    for each in (model, tokenizer):
        each.save_pretrained(folder)
    return folder


GIVEN: dict[str, Any] = {
    **{"text": "body", "id": "name", "forget": "kind in ('teaches', 'noise')"},
    **{"selector": "influence", "budgets": 0.5},
}


@pytest.fixture
def few_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio that stands beside every list is estimated by a selector that takes no time."""
    settings = plugin("selector", "mamushi_lr").defaults
    quick = lambda pool, _, seed: mamushi_lr.score(pool, settings, seed)  # noqa: E731
    monkeypatch.setattr(load("selector", "mamushi"), "score", quick)


@pytest.mark.usefixtures("few_networks")
def test_texts_that_teach_the_domain_go_before_noise_of_it(frame: pd.DataFrame, ours: Path) -> None:
    ranking = mamushi.rank(frame, model=ours, **GIVEN)
    scores = ranking.scores.to_pandas().set_index("id")
    assert sorted(scores.index) == sorted(frame["name"])
    forget = scores[scores["domain"] == "forget"]
    teaches = forget.index.str.startswith("teaches")
    assert auc(forget["score"].to_numpy(), teaches) > 0.8
    listed = ranking.lists[0.5]
    assert len(listed.ids) == COUNT
    assert np.mean([name.startswith("teaches") for name in listed.ids]) > 0.75
    left = ranking.apply(frame, 0.5)
    assert {*left["name"]} == {*frame["name"]} - {*listed.ids}
    # No other training is done, so that nothing is scored again.
    assert "it was not refitted" in listed.verdict
