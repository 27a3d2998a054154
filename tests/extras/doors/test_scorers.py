"""What ranked texts, as a file that scores others: as the selector itself does."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mamushi.selection.pool import Pool
from mamushi_curate.vectors.word_vectors import WordComponents, count_words, fit_components
from mamushi_extras.doors.scorers import fit_stack, read_scorer, save_scorer, task_of_all
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words.estimators import combine, count_ngrams, inner_scores, stacked_logits
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


def saved(path: Path, components: WordComponents | None = COMPONENTS) -> Path:
    """A scorer of the texts, by words alone or by vectors."""
    weights = fit_stack(POOL, components, SETTINGS, 7)
    about = {"text": "text", "part": "whole", "vectors": None}
    save_scorer(path, weights, {"scorer": about})
    return path


@pytest.mark.parametrize("components", [COMPONENTS, None])
def test_it_scores_as_the_selector_scores_who_was_held_out(
    tmp_path: Path, components: WordComponents | None
) -> None:
    """By its own functions, of texts and others in one pool; vectors of the words may be a
    model's."""
    scorer = read_scorer(saved(tmp_path / "a.safetensors", components))
    x = rarity_of(COMPONENTS.rarity).transform(count_words(NEW)[:, COMPONENTS.words])
    if components is None:
        vectors = x @ COMPONENTS.directions.T
        vectors[40:42] = np.nan
        scorer = replace(scorer, embed=lambda texts: vectors)
    scores = scorer.scores(NEW)
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
