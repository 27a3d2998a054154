"""The order of a corpus that nobody labelled, and what a list of it holds."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi.selection.removals import removal_list
from mamushi_extras.audit import adds
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.corpus import (
    NO_SAMPLE,
    Corpus,
    describe_list,
    manifest_of_corpus,
    read_corpus,
)
from mamushi_extras.unlabelled.like import EXAMPLE, WANTED
from mamushi_extras.unlabelled.schemas import POSTERIOR
from mamushi_extras.unlabelled.share import CROSSED, FAIR, UNLIKE

GIVEN, ANSWERED = f"label_{like.GIVEN}", f"label_{adds.ANSWERED}"
NOTHING = {"estimate": None, "low": None, "high": None}


def made(a: float, seed: int = 0, wanted: int = 0, certain: int = 0, apart: float = 2.0) -> Any:
    """A corpus of 2,000 texts with 100 examples, so many of them ``certain``, and the texts that
    are of the domain."""
    rng = np.random.default_rng(seed)
    domain = np.r_[np.ones(100), rng.random(2000) < a, np.zeros(wanted)].astype(bool)
    score = rng.normal(apart * domain, 1)
    inside = np.r_[np.arange(100) < certain, np.ones(2000), np.zeros(wanted)].astype(bool)
    place = np.arange(len(domain))
    ids = np.array([f"t{i:04}" for i in place], dtype=object)
    return Corpus(ids, score, place < 100, inside, place >= 2100), domain


def audited(corpus: Corpus, domain: Any, seed: int) -> Corpus:
    """The same with the answers about 100 texts of the first 200, and 60 of all others."""
    rng, asked = np.random.default_rng(seed), np.zeros(len(domain), dtype=bool)
    asked[rng.choice(corpus.order[:200], 100, replace=False)] = True
    asked[rng.choice(corpus.order[200:], 60, replace=False)] = True
    yes, no = asked & domain, asked & ~domain
    known = {"examples": corpus.examples | yes, "to_keep": corpus.to_keep | no}
    return replace(corpus, inside=corpus.inside & ~no, answered=asked, **known)


def has(interval: Any, true: float) -> bool:
    """Tell whether an interval has a share, as far as it has ends."""
    high = interval["high"]
    return bool((interval["low"] or 0.0) <= true <= (1.0 if high is None else high))


def test_certain_texts_come_first_then_likely_ones_and_wanted_ones_are_in_no_list() -> None:
    corpus, domain = made(0.2, wanted=300, certain=7)
    order, k = corpus.order, corpus.likely
    assert corpus.examples[order].tolist() == [True] * 7 + [False] * 2000
    assert (np.diff(corpus.score[order[7:]]) <= 0).all()
    assert corpus.posterior[order[:7]].tolist() == [1.0] * 7
    assert corpus.posterior[corpus.to_keep].max() == 0
    first, after = corpus.posterior[order[[k - 1, k]]]
    assert first > 0.5 >= after and domain[order[:k]].mean() > 0.6
    tied = replace(corpus, ids=corpus.ids[::-1], score=0 * corpus.score)
    ids = tied.ids[tied.order[7:]].tolist()
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
    asked = audited(corpus, domain, 0)
    for own in (corpus, asked):
        scores, examples = tables_of(own)
        write_table(tmp_path / "examples.parquet", schemas.EXAMPLES, examples)
        again = read_corpus(scores, tmp_path / "examples.parquet", hits=False, fair=FAIR)
        assert again.order.tolist() == own.order.tolist()
        assert (again.answered == own.answered).all()
        table = again.table(scores)
        assert table.schema == POSTERIOR.schema
        ranks = table["rank"].to_pylist()
        assert [ranks[row] for row in own.order] == [*range(1, len(own.order) + 1)]
        assert table["rank"].null_count == (~own.inside).sum()
        # p1 / pC is what the share of the domain makes of the posterior.
        unknown = np.flatnonzero(own.unknown & np.logical_not(own.answered))
        ratio = np.exp(table["log_ratio"].to_numpy()[unknown]) * again.unknown_share.estimate
        assert ratio == pytest.approx(again.posterior[unknown])
    assert asked.order.tolist() != corpus.order.tolist()


Held = Iterator[tuple[str, Any, float]]
"""What an interval is of, the interval, and the truth."""


def certain_and_wanted(seed: int, certain: int, wanted: int) -> Held:
    corpus, domain = made(0.2, seed, wanted, certain)
    for k in (150, 600) if corpus.unknown_share.high is not None else ():
        precision, recall = corpus.list_rates(k)
        caught = domain[corpus.order[:k]].sum()
        yield "precision", precision, caught / k
        yield "recall", recall, max(caught - certain, 0) / (domain & corpus.unknown).sum()
        assert wanted or certain or precision["low"] is None


def worst_examples(seed: int) -> Held:
    """Wanted texts bound from below whatever the examples are."""
    corpus, domain = made(0.2, seed, wanted=300)
    biased = replace(corpus, score=corpus.score + 1.5 * corpus.examples, fair=(UNLIKE,))
    share, (precision, recall) = biased.share(), biased.list_rates(300)
    assert (share["high"], precision["high"], recall["low"]) == (None, None, None)
    yield "share", share, domain[biased.inside].mean()
    yield "precision", precision, domain[biased.order[:300]].mean()


def answered(seed: int) -> Held:
    """Answers about the ends of a list are certain or in no list; taken for examples, they would
    bend the share."""
    corpus, domain = made(0.1, seed, wanted=300, certain=5)
    again = audited(corpus, domain, seed)
    yes = again.answered & domain
    assert again.certain.sum() == 5 + (yes & ~corpus.examples).sum()
    assert again.certain[again.order[: again.certain.sum()]].all()
    assert not (again.answered & ~domain)[again.order].any()
    if again.unknown_share.high is not None:
        yield "share", again.share(), domain[corpus.inside].mean()
        yield "precision", again.list_rates(200)[0], domain[again.order[:200]].mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        *(partial(certain_and_wanted, certain=c, wanted=w) for c in (0, 20) for w in (0, 300)),
        *(worst_examples, answered),
    ],
)
def test_intervals_hold_the_truth(world: Callable[[int], Held]) -> None:
    held = defaultdict[str, list[bool]](list)
    for seed in range(60):
        for name, interval, true in world(seed):
            held[name].append(has(interval, true))
    assert min(map(np.mean, held.values())) >= 0.93
    # A mixture is taken for none now and then.
    assert min(map(len, held.values())) >= 56


def test_a_list_of_certain_texts_is_of_the_domain() -> None:
    corpus, _ = made(0.1, certain=20)
    assert corpus.list_rates(20)[0] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    assert corpus.list_rates(10)[1]["high"] == 0
    assert corpus.share()["low"] is None and corpus.share()["high"] > 20 / 2020
    precision, recall = replace(corpus, fair=()).list_rates(40)
    assert precision == {"estimate": None, "low": 0.5, "high": None} and recall["low"] is None
    # Also where examples score higher than the corpus' texts of their domain.
    corpus, _ = made(0.1, wanted=300)
    elsewhere = replace(corpus, score=corpus.score + 3 * corpus.examples)
    assert elsewhere.share() == NOTHING | {"reason": CROSSED}


def test_hits_of_a_blocklist_are_not_taken_at_their_word_and_an_answer_overrules_them() -> None:
    rng, n = np.random.default_rng(3), 2300
    # Of 300 hits every third is mistaken, and looks like the texts that are not hit.
    true = np.r_[np.arange(300) % 3 > 0, rng.random(2000) < 0.05]
    ids = np.array([f"t{i:04}" for i in range(n)], dtype=object)
    inside, hits = np.ones(n, dtype=bool), np.arange(n) < 300
    corpus = Corpus(ids, rng.normal(2.5 * true, 1), hits, inside, ~inside, hits=True)
    assert not corpus.certain.any()
    assert corpus.posterior[hits & ~true].mean() < 0.5 < 0.7 < corpus.posterior[hits & true].mean()
    assert corpus.share() == NOTHING | {"reason": NO_SAMPLE}
    assert corpus.list_rates(100) == (NOTHING, NOTHING)
    assert describe_list(*corpus.list_rates(100)).startswith("an unknown share of it is of the")
    asked = rng.random(n) < 0.2
    wanted, hit = asked & ~true, np.where(asked, true, hits)
    again = replace(corpus, examples=hit, inside=~wanted, to_keep=wanted, answered=asked)
    assert (again.certain == (asked & true)).all()
    assert (again.posterior[asked] == true[asked]).all()


SEPARATES = {
    **{"auc": 0.9, "auc_low": 0.85, "auc_high": 0.95, "follows": []},
    **{"matched": 0.9, "matched_low": 0.85},
}
STABLE = {"rankings": 3, "surely": 90, "toss_up": 5}


def test_a_manifest_says_what_a_list_holds_and_whether_to_act_on_it() -> None:
    def manifest_of(corpus: Corpus, k: int) -> dict[str, Any]:
        copy = {"id": "copy", "kept_id": corpus.ids[corpus.order[0]], "text_sha256": ""}
        table = corpus.table(tables_of(corpus)[0])
        listed = removal_list(table, pa.Table.from_pylist([copy]), k)
        return manifest_of_corpus(corpus, listed, SEPARATES, STABLE)

    corpus, _ = made(0.2, certain=5)
    about = manifest_of(corpus, 100)
    assert [about[name] for name in ("removed", "copies", "n_forget")] == [100, 1, 2005]
    assert about["judgement"]["act"] == "check" and about["expected"]["withheld"]
    assert "a text like the examples is in it with a chance of" in about["verdict"]
    assert "of it is of the domain" in about["verdict"]
    known, _ = made(0.2, wanted=300, apart=3.0)
    acts = [manifest_of(known, k)["judgement"]["act"] for k in (300, 1500)]
    assert acts == ["take", "check"]
