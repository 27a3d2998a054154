"""What a screen lets through, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mamushi.data import readers
from mamushi.data.conversations import Conversations
from mamushi_extras.unlabelled import screen
from mamushi_extras.unlabelled.screen import FOLDS, Screen, fit_screen
from mamushi_extras.unlabelled.share import count_bounds
from tests.support.corpora import write_texts as write

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


def through(fitted: Screen, corpus: list[str], most: int) -> list[int]:
    rows = ((number, "", {"body": text}) for number, text in enumerate(corpus))
    return [number for number, *_ in fitted.through(rows, Conversations("body"), most)]


def test_texts_like_the_examples_pass_and_those_without_words_do_not() -> None:
    corpus = [*texts(900, 0.02), *texts(100, 0.2), *["", "?! 123"] * 20]
    passed = through(fit_screen(EXAMPLES, SAMPLE), corpus, 150)
    assert len(passed) == 150
    assert passed == sorted(passed)
    assert sum(900 <= row < 1000 for row in passed) >= 90
    assert max(passed) < 1000


def test_texts_without_spaces_pass_by_their_pairs_of_letters() -> None:
    def written(n: int, words: list[str]) -> list[str]:
        letters = [chr(code) for code in range(0x4E00, 0x4E00 + 300)]
        return ["".join([*RNG.choice(letters, 30), *RNG.choice(words, 3)]) for _ in range(n)]

    ours, others = ["毒品", "吸毒", "贩毒"], ["天气", "下雨", "刮风"]
    fitted = fit_screen(written(60, ours), written(400, others))
    passed = through(fitted, [*written(300, others), *written(30, ours)], 40)
    assert {*range(300, 330)} <= {*passed}


def test_the_same_pass_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts(500, 0.1)
    # The first of those that score alike.
    corpus[7:9] = corpus[400:402] = texts(2, 0.9)
    found = []
    for block in (screen.SCREEN_BLOCK, 7):
        monkeypatch.setattr(screen, "SCREEN_BLOCK", block)
        fitted = fit_screen(EXAMPLES, SAMPLE)
        found.append((through(fitted, corpus, 3), np.sort(fitted.best, axis=0).tolist()))
    assert found[0] == found[1]
    assert {7, 8} <= {*found[0][0]}


@pytest.mark.slow
def test_the_share_of_the_domain_that_passes_is_bounded_by_examples_that_no_fit_has_seen() -> None:
    held, apart = [], []
    for _ in range(40):
        examples = texts(60, 0.1)
        fitted = fit_screen(examples, texts(300, 0.02))
        domain = texts(300, 0.1)
        passed = through(fitted, [*texts(900, 0.02), *domain], 200)
        # Nobody marked the domain, so that it takes its place among those that pass.
        caught = np.mean([row >= 900 for row in passed]) * 200 / 300
        passes = fitted.margins(examples) >= 0
        # By fits to fewer examples, so that the share is rather more.
        held.append(count_bounds(int(passes.sum()), len(passes))[0] <= caught)
        apart.append(caught - passes.mean())
        assert 0.2 < caught < 0.7
    assert np.mean(held) >= 0.95
    assert -0.02 < np.mean(apart) < 0.08


def test_a_text_without_words_is_as_the_lowest_one() -> None:
    fitted = fit_screen(EXAMPLES, SAMPLE)
    through(fitted, [*texts(50, 0.1), "?! 123"], 51)
    margins = fitted.margins(EXAMPLES, ["", *texts(20, 0.02)])
    assert np.abs(margins).max() < 100
    assert margins[len(EXAMPLES)] == margins.min()
    assert (margins[: len(EXAMPLES)] >= 0).all()


def test_an_example_is_not_scored_by_a_fit_to_its_copies() -> None:
    examples = [*texts(40, 0.2), *["the very same odd text of some odd words"] * 10]
    examples += [f"the very same odd text of some odd words {word}" for word in ("a", "b", "c")]
    fold = fit_screen(examples, SAMPLE).fold
    assert len({*fold[40:].tolist()}) == 1
    assert len({*fold.tolist()}) == FOLDS


def test_a_sample_is_as_likely_from_the_end_as_from_the_start(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.jsonl", [str(row) for row in range(2000)])
    table, n = readers.sampled(path, ["body"], 400)
    found = np.array(table.columns["body"], dtype=int)
    assert n == 2000
    assert [number - 1 for number in table.numbers] == found.tolist()
    assert len({*found.tolist()}) == 400
    assert abs(np.mean(found < 1000) - 0.5) < 0.08
