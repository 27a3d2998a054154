"""Budgets, lists, the frontier against exact sums, and manifests."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mamushi.errors import UserError
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.manifest import Calibrated, manifest
from mamushi.io import schemas
from mamushi.selection.removals import budget_size, removal_list
from tests.support import divergences
from tests.support.divergences import preservation_by_importance
from tests.support.score_files import ranks_of

PI1 = 0.2
P1 = np.array([0.05, 0.15, 0.25, 0.3, 0.25])
P2 = np.array([0.4, 0.3, 0.2, 0.08, 0.02])
RATIO = np.log(P1 / P2)
# Samples that hit every point of the world exactly as often as its probability says.
TIMES = 100
L1 = np.repeat(RATIO, np.round(P1 * TIMES).astype(int))
L2 = np.repeat(RATIO, np.round(P2 * TIMES).astype(int))


def kl(p, q):
    return float((p * np.log(p / q)).sum())


def edited(kept):
    """p_-S (paper, Eq. edited mixture) for any share kept of p1 at every point."""
    mass = PI1 * P1 * kept + (1 - PI1) * P2
    return mass / mass.sum()


@pytest.mark.parametrize("kept", [[1] * 5, [1, 1, 1, 0, 0], [0, 1, 1, 0, 1], [0] * 5, [0.4] * 5])
def test_frontier_equals_exact_sums(kept):
    kept = np.array(kept, dtype=float)
    at1, at2 = (np.repeat(kept, np.round(p * TIMES).astype(int)) for p in (P1, P2))
    b = float(P1 @ (1 - kept))
    assert divergences.removal(L1, at1, PI1) == pytest.approx(kl(P1, edited(kept)), abs=1e-12)
    preserved = kl(P2, edited(kept))
    assert divergences.preservation(L2, at2, PI1, b) == pytest.approx(preserved, abs=1e-12)
    if set(kept) <= {0.0, 1.0}:
        by_importance = preservation_by_importance(L1, L2, at1, PI1)
        assert by_importance == pytest.approx(preserved, abs=1e-12)


def test_count_is_the_exact_floor():
    for step in range(21):
        beta = step / 20
        for n1 in [1, 2, 3, 7, 10, 19, 20, 100, 997, 1000, 8115]:
            assert budget_size(beta, n1) == budget_size(f"{beta:.2f}", n1) == step * n1 // 20
    assert budget_size(0.7, 10) == 7
    assert budget_size(0.29, 100) == int(Decimal("0.29") * 100) == 29 != int(0.29 * 100)
    for beta in (-0.1, 1.01):
        with pytest.raises(UserError, match="not between 0 and 1"):
            budget_size(beta, 10)


def scores_table(n1=40, n2=60, seed=0, retain_scores=True, column=None):
    score = np.random.default_rng(seed).normal(0, 1, n1 + n2) if column is None else column
    forget = np.arange(n1 + n2) < n1
    rank = np.concatenate([ranks_of(score[:n1]), np.zeros(n2, np.int64)])
    hidden = ~forget & (not retain_scores)
    return pa.table(
        {
            "id": [f"é{i}" for i in range(n1 + n2)],
            "domain": np.where(forget, "forget", "retain").tolist(),
            "score": pa.array(score, mask=hidden),
            "rank": pa.array(rank, mask=~forget),
            "fold": pa.array([None] * (n1 + n2), pa.int16()),
        }
    )


def ratio_of(table, lost=0.0, withheld=None):
    """The scores of a table as the calibrated ratio."""
    columns = {"id": table["id"], "log_ratio": table["score"]}
    ratio = pa.table({**columns, "group": pa.nulls(len(table), pa.int64())})
    verdict = {"reason": withheld, "withheld": withheld}
    return Calibrated(ratio, lost, "own", verdict, Dependence())


AUC = {"auc": 0.95, "auc_low": 0.9, "auc_high": 0.97, "matched": None, "matched_low": None}
LISTED = {"rankings": 3, "expected_overlap": 0.9, "surely": 11, "toss_up": 1}
ABOUT = {"selector": "own", "stability": LISTED}, {**AUC, "follows": []}
"""What is known of a ranking: its own AUC, and that it was made three times."""


def dropped(*rows):
    """A table of duplicates, of (id, kept_id, reason)."""
    columns = zip(*((*row, f"text of {row[0]}") for row in rows), strict=True)
    arrays = [pa.array(column, pa.string()) for column in (columns if rows else [()] * 4)]
    return pa.table(arrays, schemas.DUPLICATES.schema.names)


def test_removals_are_the_top_by_rank_and_nested():
    table = scores_table()
    every = removal_list(table, dropped(), 40)
    assert every["score"].to_pylist() == sorted(table["score"].to_numpy()[:40], reverse=True)
    for k in range(0, 41, 5):
        top = removal_list(table, dropped(), k)
        assert top["rank"].to_pylist() == list(range(1, k + 1))
        assert top.equals(every.slice(0, k))


def test_copies_go_with_the_example_that_they_were_collapsed_into():
    table = scores_table()
    first, second, third, *_, last = removal_list(table, dropped(), 40)["id"].to_pylist()
    duplicates = dropped(
        ("z", first, "near"),
        ("gone/1", None, "cross_post"),
        ("b", third, "exact"),
        ("a", first, "exact"),
        ("c", last, "exact"),
        # Of a text that a limit dropped: in no list.
        ("d", "no example", "exact"),
        ("gone/2", None, "cross_post"),
        ("e", "é50", "exact"),
    )
    listed = removal_list(table, duplicates, 3)
    assert listed["id"].to_pylist() == [first, second, third]
    assert listed["copies"].to_pylist() == [["a", "z"], [], ["b"]]
    assert listed["copies_sha256"].to_pylist() == [["text of a", "text of z"], [], ["text of b"]]
    for k, copies in ((0, 0), (1, 2), (2, 2), (3, 3), (40, 4)):
        told = manifest(table, ratio_of(table), duplicates, k, *ABOUT)
        assert (told["removed"], told["copies"], told["cross_posts"]) == (k, copies, 2)
        bare = manifest(table, ratio_of(table), dropped(), k, *ABOUT)
        assert told["ids_sha256"] == bare["ids_sha256"]
        assert (bare["copies"], bare["cross_posts"]) == (0, 0)


def expected(scores, ratio, k, by_chance):
    told = manifest(scores, ratio_of(ratio), dropped(), k, *ABOUT, by_chance=by_chance)
    assert told["expected"]["withheld"] is None
    return told["expected"]["at_this_budget"]


def test_expected_values_of_each_form():
    rng = np.random.default_rng(1)
    ratio = scores_table(column=np.concatenate([rng.normal(1, 1, 40), rng.normal(0, 2, 60)]))
    log_ratio = ratio["score"].to_numpy()
    l1, l2 = log_ratio[:40], log_ratio[40:]
    score, pi1, k = ratio["score"].to_numpy(), 0.4, 12
    threshold = np.sort(score[:40])[-k]
    kept1, kept2 = (score[:40] < threshold) * 1.0, (score[40:] < threshold) * 1.0

    found = expected(ratio, ratio, k, by_chance=False)
    assert found["removal"] == pytest.approx(divergences.removal(l1, kept1, pi1))
    assert found["preservation"] == pytest.approx(divergences.preservation(l2, kept2, pi1, 0.3))
    assert 0 < kept2.mean() < 1

    hidden = scores_table(column=log_ratio, retain_scores=False)
    found = expected(hidden, ratio, k, by_chance=False)
    assert found["preservation"] == pytest.approx(preservation_by_importance(l1, l2, kept1, pi1))

    found = expected(hidden, ratio, k, by_chance=True)
    assert found["removal"] == pytest.approx(divergences.removal(l1, np.full(40, 0.7), pi1))

    with pytest.raises(AssertionError, match="hold other examples"):
        expected(ratio, ratio.slice(1), k, by_chance=False)


def test_the_share_of_a_list_that_the_retain_domain_has_too():
    shifted = np.random.default_rng(0).normal(0, 1, 6040) + np.repeat([1.0, 0.0], [40, 6000])
    table = scores_table(n1=40, n2=6000, column=shifted)
    score, k = shifted, 10
    above = np.mean(score[40:] >= np.sort(score[:40])[-k])
    band = math.sqrt(math.log(40) / (2 * 6000))

    def told(scores, k):
        return manifest(scores, ratio_of(table), dropped(), k, *ABOUT)["also_retain"]

    found = told(table, k)
    assert 0.01 < above < above + band < 0.25
    assert found["estimate"] == pytest.approx(above / 0.25)
    assert found["upper_bound"] == pytest.approx((above + band) / 0.25)
    # A share is at most all of the list.
    assert told(scores_table(n1=40, n2=6000), 10)["upper_bound"] == 1
    unknown = scores_table(n1=40, n2=6000, column=shifted, retain_scores=False)
    for scores, k in ((table, 0), (unknown, 10)):
        found = told(scores, k)
        assert found["estimate"] is found["upper_bound"] is None
