"""Budgets, lists, the frontier against exact sums, and manifests."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mamushi.errors import UserError
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.manifest import Calibrated, manifest
from mamushi.io import paths, schemas
from mamushi.selection.removals import budget_size, removal_list
from tests.support import divergences
from tests.support.divergences import preservation_by_importance
from tests.support.score_files import scores_table

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
    # In names of files, of as many decimals as tell budgets apart.
    texts = [paths.beta(budget) for budget in ("0.5", 0.1 + 0.2, "0.004200", 1 - 1e-6)]
    assert texts == ["0.50", "0.30", "0.0042", "0.999999"]
    for beta in (-0.1, 1.01):
        with pytest.raises(UserError, match="not between 0 and 1"):
            budget_size(beta, 10)


def table_of(n1=40, n2=60, column=None):
    score = np.random.default_rng(0).normal(0, 1, n1 + n2) if column is None else column
    return scores_table(score, np.arange(n1 + n2) < n1)


def ratio_of(table, lost=0.0, withheld=None, z=None):
    """The scores of a table as the calibrated ratio."""
    columns = {"id": table["id"], "log_ratio": table["score"]}
    ratio = pa.table({**columns, "group": pa.nulls(len(table), pa.int64())})
    verdict = {"reason": withheld, "withheld": withheld}
    return Calibrated(ratio, lost, "own", verdict, Dependence(z=z))


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
    table = table_of()
    every = removal_list(table, dropped(), 40)
    assert every["score"].to_pylist() == sorted(table["score"].to_numpy()[:40], reverse=True)
    for k in range(0, 41, 5):
        top = removal_list(table, dropped(), k)
        assert top["rank"].to_pylist() == list(range(1, k + 1))
        assert top.equals(every.slice(0, k))


def test_copies_go_with_the_example_that_they_were_collapsed_into():
    table = table_of()
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
        ("e", "t50", "exact"),
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


def test_what_is_expected_of_a_list_and_its_share_that_the_retain_domain_has_too():
    rng = np.random.default_rng(1)
    log_ratio = np.concatenate([rng.normal(1, 1, 40), rng.normal(-1, 2, 6000)])
    table, k = table_of(40, 6000, log_ratio), 12
    threshold, above = np.sort(log_ratio[:40])[-k], log_ratio[40:]
    found = manifest(table, ratio_of(table), dropped(), k, *ABOUT)
    expected, kept1, kept2 = found["expected"], log_ratio[:40] < threshold, above < threshold
    pi1 = 40 / 6040
    removal = divergences.removal(log_ratio[:40], kept1 * 1.0, pi1)
    assert expected["at_this_budget"]["removal"] == pytest.approx(removal)
    preservation = divergences.preservation(above, kept2 * 1.0, pi1, 0.3)
    assert expected["at_this_budget"]["preservation"] == pytest.approx(preservation)
    share, band = np.mean(~kept2), math.sqrt(math.log(40) / (2 * 6000))
    assert found["also_retain"]["estimate"] == pytest.approx(share / 0.3)
    assert found["also_retain"]["upper_bound"] == pytest.approx((share + band) / 0.3)
    hidden = table_of(40, 6000, np.where(np.arange(6040) < 40, log_ratio, np.nan))
    # The last has texts in groups that no column names.
    for scores, size, z in ((table, 0, None), (hidden, 10, None), (table, k, 3.0)):
        unknown = manifest(scores, ratio_of(table, z=z), dropped(), size, *ABOUT)["also_retain"]
        assert unknown["estimate"] is unknown["upper_bound"] is None
    with pytest.raises(AssertionError, match="hold other examples"):
        manifest(table, ratio_of(table.slice(1)), dropped(), k, *ABOUT)
