"""The order of a corpus that nobody labelled, and what a list of it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi_extras.audit import answers
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.corpus import (
    NO_SAMPLE,
    Corpus,
    list_words,
    manifest_of_corpus,
    read_corpus,
    share_text,
)
from mamushi_extras.unlabelled.like import EXAMPLE, WANTED
from mamushi_extras.unlabelled.schemas import POSTERIOR
from mamushi_extras.unlabelled.share import FAIR, LIKE, NOT_FAIR, UNLIKE

GIVEN, ANSWERED = f"label_{like.GIVEN}", f"label_{answers.ANSWERED}"
SCREEN = f"label_{like.SCREEN}"

SEPARATES = {
    **{"auc": 0.9, "auc_low": 0.85, "auc_high": 0.95, "follows": []},
    **{"matched": 0.9, "matched_low": 0.85},
}
LISTED = {"rankings": 3, "expected_overlap": 0.9, "least_overlap": 0.9, "surely": 90, "toss_up": 5}


def made(a: float, seed: int = 0, wanted: int = 0, certain: int = 0, apart: float = 2.0) -> Any:
    """A corpus of 2,000 texts with 100 examples, so many of them ``certain``, and the texts that
    are of the domain."""
    rng = np.random.default_rng(seed)
    domain = np.r_[np.ones(100), rng.random(2000) < a, np.zeros(wanted)].astype(bool)
    score = rng.normal(apart * domain, 1)
    inside = np.r_[np.arange(100) < certain, np.ones(2000), np.zeros(wanted)].astype(bool)
    examples = np.arange(len(domain)) < 100
    ids = np.array([f"t{i:04}" for i in range(len(domain))], dtype=object)
    last = np.arange(len(domain)) >= 2100
    return Corpus(ids, score, examples, inside, last), domain


def test_certain_texts_come_first_and_wanted_ones_are_in_no_list() -> None:
    corpus, _ = made(0.1, wanted=50, certain=7)
    order = corpus.order
    assert len(order) == 2007
    assert corpus.examples[order].tolist() == [True] * 7 + [False] * 2000
    assert (np.diff(corpus.score[order[7:]]) <= 0).all()
    assert not corpus.to_keep[order].any()
    assert corpus.posterior[order[:7]].tolist() == [1.0] * 7
    assert corpus.posterior[corpus.to_keep].max() == 0


def test_equal_scores_go_by_id() -> None:
    corpus, _ = made(0.1)
    tied = replace(corpus, ids=corpus.ids[::-1], score=0 * corpus.score)
    ids = tied.ids[tied.order].tolist()
    assert ids == sorted(ids)


def tables_of(corpus: Corpus) -> tuple[pa.Table, pa.Table]:
    """The scores and the examples of a corpus."""
    n, ids = len(corpus.ids), corpus.ids.tolist()
    domain = np.where(corpus.examples, "forget", "retain").tolist()
    given = pa.array(np.where(corpus.to_keep, WANTED, EXAMPLE).tolist(), mask=corpus.inside)
    nothing = {"log_density_ratio": pa.nulls(n, pa.float64()), "group": pa.nulls(n, pa.string())}
    examples = {"id": ids, "text": ids, "domain": domain, "section": ["inference"] * n}
    scores = {"id": ids, "domain": domain, "score": corpus.score, "fold": pa.nulls(n, pa.int16())}
    yes, no = corpus.answered & corpus.examples, corpus.answered & corpus.to_keep
    said = pa.array(np.where(yes, "yes", "no").tolist(), mask=~(yes | no))
    return pa.table(scores), pa.table(examples | nothing | {GIVEN: given, ANSWERED: said})


def test_a_table_ranks_the_corpus_and_nothing_else(tmp_path: Path) -> None:
    corpus, domain = made(0.1, wanted=50, certain=7)
    scores, examples = tables_of(corpus)
    write_table(tmp_path / "examples.parquet", schemas.EXAMPLES, examples)
    again = read_corpus(scores, tmp_path / "examples.parquet", hits=False, fair=FAIR)
    assert again.order.tolist() == corpus.order.tolist()
    table = again.table(scores)
    assert table.schema == POSTERIOR.schema
    ranks = table["rank"].to_pylist()
    assert [ranks[row] for row in corpus.order] == [*range(1, 2008)]
    assert table["rank"].null_count == 93 + 50
    # p1 / pC is what the share of the domain makes of the posterior.
    rest = np.flatnonzero(corpus.unknown)
    ratio = np.exp(table["log_ratio"].to_numpy()[rest]) * again.of_unknown.estimate
    assert ratio == pytest.approx(again.posterior[rest])
    asked = audited(corpus, domain, 0)
    scores, examples = tables_of(asked)
    write_table(tmp_path / "asked.parquet", schemas.EXAMPLES, examples)
    read = read_corpus(scores, tmp_path / "asked.parquet", hits=False, fair=FAIR)
    assert np.array_equal(read.answered, asked.answered)
    assert read.order.tolist() == asked.order.tolist() != corpus.order.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("certain", [0, 20])
@pytest.mark.parametrize("wanted", [0, 300])
def test_precision_and_recall_hold_what_a_list_holds(certain: int, wanted: int) -> None:
    held: dict[str, list[bool]] = {"precision": [], "recall": []}
    for seed in range(100):
        corpus, domain = made(0.2, seed, wanted, certain)
        for k in (150, 600):
            found = dict(zip(held, corpus.holds(k), strict=True))
            caught = domain[corpus.order[:k]].sum()
            beside = max(caught - certain, 0) / (domain & corpus.unknown).sum()
            true = {"precision": caught / k, "recall": beside}
            for name, each in found.items():
                if corpus.bounded:
                    held[name].append((each["low"] or 0) <= true[name] <= each["high"])
            if not (wanted or certain):
                assert found["precision"]["low"] is None
    assert np.mean(held["precision"]) >= 0.93
    assert np.mean(held["recall"]) >= 0.93
    assert len(held["recall"]) >= 194  # of 200: a mixture is taken for none now and then


def test_examples_that_were_not_drawn_at_random_bound_nothing() -> None:
    """The worst ones that somebody has: recall of a list by them held the truth in no draw."""
    corpus, domain = made(0.2, wanted=300)
    worst = np.flatnonzero(corpus.examples)
    score = corpus.score.copy()
    score[worst] += 1.5
    biased = replace(corpus, score=score)
    k = 300
    true = domain[biased.order[:k]].sum() / domain[biased.inside].sum()
    believed = replace(biased, fair=(LIKE,)).holds(k)[1]
    assert believed["low"] is not None and believed["low"] > true
    unsaid = replace(biased, fair=())
    nothing = {"estimate": None, "low": None, "high": None}
    assert unsaid.holds(k) == (nothing, nothing)
    assert unsaid.share() == nothing | {"reason": NOT_FAIR}
    assert list_words(*unsaid.holds(k)).startswith("an unknown share of it is of the domain")
    # The order, and a guess at how many are likely, need no fair sample.
    assert unsaid.order.tolist() == biased.order.tolist()
    assert unsaid.likely == biased.likely


def test_wanted_texts_bound_from_below_whatever_the_examples_are() -> None:
    held: dict[str, list[bool]] = {"share": [], "precision": []}
    lows: list[tuple[float, float]] = []
    for seed in range(100):
        corpus, domain = made(0.2, seed, wanted=300)
        biased = replace(corpus, score=corpus.score + 1.5 * corpus.examples, fair=(UNLIKE,))
        share, (precision, recall) = biased.share(), biased.holds(300)
        true = domain[biased.order[:300]].mean()
        assert (share["high"], precision["high"], recall["low"]) == (None, None, None)
        held["share"].append(share["low"] <= domain[biased.inside].mean())
        held["precision"].append((precision["low"] or 0.0) <= true)
        lows.append((share["low"], precision["low"] or 0.0))
    assert min(map(np.mean, held.values())) >= 0.93
    assert np.all(np.median(lows, axis=0) > (0.03, 0.4))
    assert share_text({**share, "low": 0.05}) == "at least 5.0%"
    assert share_text({**share, "low": 0.0}) == "an unknown share"


def test_certain_texts_are_known_without_a_fair_sample() -> None:
    corpus, _ = made(0.1, certain=20)
    precision, recall = replace(corpus, fair=()).holds(40)
    assert precision == {"estimate": None, "low": 0.5, "high": None}
    assert share_text(precision) == "at least 50%" and recall["low"] is None


def test_what_is_expected_of_a_list_is_at_least_what_is_known_of_it() -> None:
    """Also where examples score higher than the corpus' texts of their domain."""
    corpus, _ = made(0.1, wanted=300)
    precision, _ = replace(corpus, score=corpus.score + 3 * corpus.examples).holds(200)
    assert 0.1 < precision["low"] <= precision["estimate"] <= precision["high"]


def audited(corpus: Corpus, domain: Any, seed: int) -> Corpus:
    """The same with the answers about 100 texts of the first 200, and 60 of all others."""
    rng, asked = np.random.default_rng(seed), np.zeros(len(domain), dtype=bool)
    asked[rng.choice(corpus.order[:200], 100, replace=False)] = True
    asked[rng.choice(corpus.order[200:], 60, replace=False)] = True
    yes, no = asked & domain, asked & ~domain
    inside, wanted = corpus.inside & ~no, corpus.to_keep | no
    return Corpus(
        corpus.ids, corpus.score, corpus.examples | yes, inside, wanted, corpus.hits, asked
    )


def test_answers_about_the_ends_of_a_list_are_no_sample_of_what_is_wanted() -> None:
    """They are certain or in no list; taken for examples, they would bend the share."""
    held: dict[str, list[bool]] = {"share": [], "precision": []}
    for seed in range(40):
        corpus, domain = made(0.1, seed, wanted=300, certain=5)
        again = audited(corpus, domain, seed)
        yes = again.answered & domain
        assert again.certain.sum() == 5 + (yes & ~corpus.examples).sum()
        assert again.certain[again.order[: again.certain.sum()]].all()
        assert not (again.answered & ~domain)[again.order].any()
        if not again.bounded:
            continue
        share, precision = again.share(), again.holds(200)[0]
        inside = domain[corpus.inside].mean()
        held["share"].append(share["low"] <= inside <= share["high"])
        true = domain[again.order[:200]].mean()
        held["precision"].append(precision["low"] <= true <= precision["high"])
    assert np.mean(held["share"]) >= 0.93 and len(held["share"]) >= 37
    assert np.mean(held["precision"]) >= 0.93


def test_an_answer_overrules_a_hit() -> None:
    rng = np.random.default_rng(4)
    domain = np.r_[np.arange(300) % 3 > 0, rng.random(2000) < 0.05]
    ids = np.array([f"t{i:04}" for i in range(2300)], dtype=object)
    asked = rng.random(2300) < 0.2
    hits = np.where(asked, domain, np.arange(2300) < 300)
    wanted = asked & ~domain
    score = rng.normal(2.5 * domain, 1)
    corpus = Corpus(ids, score, hits, ~wanted, wanted, hits=True, answered=asked)
    assert (corpus.certain == (asked & domain)).all()
    assert (corpus.posterior[asked] == domain[asked]).all()
    assert corpus.blocklist()["hits"] == (hits & ~asked).sum()  # type: ignore[index]


def screened(seed: int, windows: int = 1) -> tuple[Corpus, float, np.ndarray[Any, Any]]:
    """A corpus of 20,000 texts, or windows of documents, of which a screen that sees half of the
    score let 1,000 pass, what share of the domain did, and which of those that did are of it."""
    rng = np.random.default_rng(seed)
    domain = np.r_[np.ones(100, dtype=bool), rng.random(20000) < 0.02, np.zeros(400, dtype=bool)]
    looks = rng.normal(2 * domain, 1)
    score = looks + rng.normal(1.5 * domain, 1)
    inside = (np.arange(len(domain)) >= 100) & (np.arange(len(domain)) < 20100)
    best = looks.copy()
    best[inside] = looks[inside].reshape(-1, windows).max(axis=1).repeat(windows)
    cut = np.sort(best[inside])[-1000]
    kept = ~inside | (best >= cut)
    recall = (best[inside & domain] >= cut).mean()
    ids = np.array([f"t{i:05}" for i in range(len(domain))], dtype=object)[kept]
    examples = (np.arange(len(domain)) < 100)[kept]
    wanted, missed = (np.arange(len(domain)) >= 20100)[kept], (looks < cut)[kept]
    groups = np.where(inside, 10**6 + np.arange(len(domain)) // windows, np.arange(len(domain)))
    corpus = Corpus(ids, score[kept], examples, inside[kept], wanted, missed=missed)
    if windows > 1:
        corpus = replace(corpus, divided=True, groups=groups[kept])
    return corpus, recall, domain[kept]


@pytest.mark.parametrize("windows", [1, 10])
def test_what_a_screen_missed_counts_against_a_list_and_not_for_the_share(windows: int) -> None:
    held: dict[str, list[bool]] = {"screen": [], "recall": [], "precision": [], "share": []}
    for seed in range(60):
        corpus, passed, domain = screened(seed, windows)
        for k in (50, 200):
            precision, recall = corpus.holds(k)
            within = corpus.order[:k]
            true = {
                "screen": passed,
                "recall": passed * domain[within].sum() / domain[corpus.inside].sum(),
                "precision": domain[within].mean(),
                "share": domain[corpus.inside].mean(),
            }
            ends: tuple[Any, ...] = (corpus.screen_recall(), recall, precision, corpus.share())
            for name, each in zip(held, ends, strict=True):
                held[name].append((each["low"] or 0) <= true[name] <= each["high"])
    for name, each in held.items():
        assert np.mean(each) >= 0.93, name


def test_a_list_of_certain_texts_is_of_the_domain() -> None:
    corpus, _ = made(0.1, certain=20)
    assert corpus.holds(20)[0] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    assert corpus.holds(10)[1]["high"] == 0
    assert corpus.share()["low"] is None
    assert corpus.share()["high"] > 20 / 2020


def test_likely_texts_are_as_many_as_are_more_likely_than_not() -> None:
    corpus, domain = made(0.2, wanted=300, certain=5)
    k = corpus.likely
    first, after = corpus.posterior[corpus.order[[k - 1, k]]]
    assert first > 0.5 >= after
    assert domain[corpus.order[:k]].mean() > 0.6


def test_hits_of_a_blocklist_are_not_taken_at_their_word() -> None:
    rng = np.random.default_rng(3)
    # Of 300 hits every third is mistaken, and looks like the texts that are not hit.
    true = np.r_[np.arange(300) % 3 > 0, rng.random(2000) < 0.05]
    ids = np.array([f"t{i:04}" for i in range(2300)], dtype=object)
    inside, hits = np.ones(2300, dtype=bool), np.arange(2300) < 300
    corpus = Corpus(ids, rng.normal(2.5 * true, 1), hits, inside, ~inside, hits=True)
    known = corpus.blocklist()
    assert known is not None
    assert known["precision"] == pytest.approx(2 / 3, abs=0.12)
    assert 0.3 < known["precision_low"] < 2 / 3
    assert not corpus.certain.any()
    assert corpus.posterior[hits & ~true].mean() < 0.5 < 0.7 < corpus.posterior[hits & true].mean()
    assert corpus.share()["high"] is None
    assert corpus.share()["reason"] == NO_SAMPLE
    assert corpus.holds(100)[1] == {"estimate": None, "low": None, "high": None}
    said = list_words(*corpus.holds(100))
    assert said.startswith("perhaps ")
    assert said.endswith("how much of the domain it has is not known")


def manifest_of(corpus: Corpus, k: int) -> dict[str, Any]:
    table = corpus.table(tables_of(corpus)[0])
    copies = pa.table(
        {
            "id": ["copy"],
            "kept_id": [corpus.ids[corpus.order[0]]],
            "reason": ["exact"],
            "text_sha256": [""],
        }
    )
    return manifest_of_corpus(corpus, table, copies, k / len(corpus.order), SEPARATES, LISTED)


def test_a_manifest_says_what_a_list_holds() -> None:
    corpus, _ = made(0.2, certain=5)
    about = manifest_of(corpus, 100)
    assert about["removed"] == 100
    assert about["copies"] == 1
    assert about["n_forget"] == 2005
    assert about["judgement"]["act"] == "check"
    assert "a text like the examples is in it with a chance of" in about["verdict"]
    assert "of it is of the domain" in about["verdict"]
    assert "retain domain would" not in about["verdict"]
    assert about["expected"]["withheld"]


def test_a_list_that_is_known_to_hold_the_domain_may_be_acted_on() -> None:
    corpus, _ = made(0.2, wanted=300, apart=3.0)
    assert manifest_of(corpus, 300)["judgement"]["act"] == "take"
    assert manifest_of(corpus, 1500)["judgement"]["act"] == "check"


def test_an_interval_that_says_nothing_is_not_shown() -> None:
    assert share_text({"estimate": 0.002, "low": 0.0, "high": 1.0}) == "an unknown share"
    assert share_text({"estimate": 0.5, "low": 0.3, "high": 0.7}) == "50% [30%, 70%]"
