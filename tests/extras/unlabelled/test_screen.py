"""What a screen lets through, and what it says of the rest."""

import numpy as np
import pytest

from mamushi_extras.unlabelled.screen import FOLDS, Screen, ScreenScores, fit_screen
from mamushi_extras.unlabelled.share import count_bounds

RNG = np.random.default_rng(0)


def texts(n: int, own: float) -> list[str]:
    """Texts of 30 words, of which the share ``own`` is of fifty words that others hardly have."""
    return [
        " ".join(
            f"own{chr(97 + RNG.integers(26))}"
            if RNG.random() < own
            else "word" + chr(97 + RNG.integers(26)) + chr(97 + RNG.integers(26))
            for _ in range(30)
        )
        for _ in range(n)
    ]


EXAMPLES, SAMPLE = texts(100, 0.2), texts(1000, 0.02)


def through(fitted: Screen, corpus: list[str], most: int) -> tuple[Screen, list[int]]:
    """The screen with its cut, and the rows that pass."""
    blocks = [*fitted.score_blocks(corpus)]
    cut = fitted.cut_at(most, blocks)
    return cut, np.flatnonzero(np.concatenate([*map(cut.passing, blocks)])).tolist()


@pytest.mark.parametrize("parts", [1, 3, 100])
@pytest.mark.parametrize("most", [1, 3, 250, 530, 1000])
def test_the_cut_is_that_of_sorted_scores(parts: int, most: int) -> None:
    """Of numbers of either sign, zeros of both, ties and texts without words."""
    rng = np.random.default_rng(most)
    scores = rng.normal(size=(530, 1 + FOLDS)).astype(np.float32)
    scores[:40] *= np.float32(1e-39)
    scores[40:60], scores[60:70] = 0.0, -0.0
    scores[100:300] = scores[99]
    scores[-30:] = -np.inf
    keys = rng.permutation(530).astype(np.int64)
    rows = np.array_split(np.arange(530), parts)
    # Nothing but its cut is of interest.
    screen = Screen(*[np.empty(0)] * 4, np.array([1000]))
    cut = screen.cut_at(most, (ScreenScores(keys[p], scores[p]) for p in rows))
    order = np.lexsort((keys, -scores[:, 0]))[:most]
    passing = cut.passing(ScreenScores(keys, scores))
    assert {*order.tolist()} == {*np.flatnonzero(passing).tolist()}
    finite = -np.sort(-np.where(np.isfinite(scores), scores, -np.inf), axis=0)
    expected = np.where(np.isfinite(finite[:most]), finite[:most], np.inf).min(axis=0)
    assert cut.lowest.tolist() == expected.tolist()


@pytest.mark.slow
def test_the_share_of_the_domain_that_passes_is_bounded_by_examples_that_no_fit_has_seen() -> None:
    held, apart = [], []
    for _ in range(40):
        examples = texts(60, 0.1)
        fitted = fit_screen(examples, texts(300, 0.02), 1200)
        domain = texts(300, 0.1)
        corpus = [*texts(900, 0.02), *domain]
        cut, passed = through(fitted, corpus, 200)
        # Nobody marked the domain, so that it takes its place among those that pass.
        caught = np.mean([row >= 900 for row in passed]) * 200 / 300
        passes = cut.margins(examples) >= 0
        # By fits to fewer examples, so that the share is rather more.
        held.append(count_bounds(int(passes.sum()), len(passes))[0] <= caught)
        apart.append(caught - passes.mean())
        assert 0.2 < caught < 0.7
    assert np.mean(held) >= 0.95
    assert -0.02 < np.mean(apart) < 0.08


def test_an_example_is_not_scored_by_a_fit_to_its_copies() -> None:
    examples = [*texts(40, 0.2), *["the very same odd text of some odd words"] * 10]
    examples += [f"the very same odd text of some odd words {word}" for word in ("a", "b", "c")]
    fold = fit_screen(examples, SAMPLE, 1000).fold
    assert len({*fold[40:].tolist()}) == 1
    assert len({*fold.tolist()}) == FOLDS
