"""What ranked texts, as a file that scores others: as the selector itself does."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from mamushi.selection.pool import Pool
from mamushi_curate.vectors.word_vectors import count_words, fit_components
from mamushi_extras.doors.saving import fit_stack, save_scorer, task_of_all
from mamushi_extras.doors.scorers import read_scorer
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words.ngrams import count_ngrams
from mamushi_extras.words.stacking import combine, inner_scores, stacked_logits
from tests.support.lab import WORDS

SETTINGS = {"folds": 5, "fit_sample": None, "prior": 10.0, "ngrams_prior": 30.0}


def drawn(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts of both kinds, with words of their own, and which are of the second."""
    rng = random.Random(seed)
    kinds = [rng.choice([*WORDS]) for _ in range(n)]
    texts = [
        " ".join(rng.choices(WORDS[kind] + ["both", f"w{rng.randrange(50)}"], k=rng.randint(3, 20)))
        for kind in kinds
    ]
    return texts, np.array([kind == "theirs" for kind in kinds])


TEXTS, FORGET = drawn(300, 0)
NEW = [*drawn(40, 1)[0], "", "?!", "unseen nothing"]
COMPONENTS, VECTORS = fit_components(TEXTS, 8)
POOL = Pool(np.arange(300).astype(str).astype(object), FORGET, VECTORS, texts=np.array(TEXTS))


def saved(path: Path) -> Path:
    """A scorer of the texts."""
    weights = fit_stack(POOL, COMPONENTS, SETTINGS, 7)
    save_scorer(path, weights, {"scorer": {"text": "text", "part": "whole"}})
    return path


def test_it_scores_as_the_selector_scores_who_was_held_out(tmp_path: Path) -> None:
    """By its own functions, of texts and others in one pool."""
    scores = read_scorer(saved(tmp_path / "a.safetensors")).scores(NEW)
    x = rarity_of(COMPONENTS.rarity).transform(count_words(NEW)[:, COMPONENTS.words])
    task, counts = task_of_all(POOL, None, 7), count_ngrams([*TEXTS, *NEW])
    inner = inner_scores(task, stacked_logits(task, counts, SETTINGS), 5)
    both = replace(
        task,
        embeddings=np.vstack([VECTORS, x @ COMPONENTS.directions.T]),
        forget=np.append(FORGET, np.zeros(len(NEW), bool)),
        held_out=np.arange(300, 300 + len(NEW)),
    )
    expected = combine(inner, FORGET, stacked_logits(both, counts, SETTINGS)(both))
    assert np.ptp(expected) > 2
    said = ~np.isnan(scores)
    np.testing.assert_allclose(scores[said], expected[said], atol=1e-4)
    assert not said[40:42].any() and said[:40].all()
