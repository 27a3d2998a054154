"""Regrets against the ranking by the exact ratio."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import FORGET, RETAIN
from mamushi.evidence.bootstrap import exact
from mamushi.evidence.frontier import ranking_of
from mamushi.evidence.truth import regrets, truth_of

N1, N2 = 300, 500
BUDGETS = np.array([0.25, 0.5, 0.75])


def drawn() -> tuple[pa.Table, np.ndarray]:
    """Examples of N(1, 1) against N(-1, 1), whose log ratio is 2x."""
    rng = np.random.default_rng(0)
    ratio = 2 * np.concatenate([rng.normal(1, 1, N1), rng.normal(-1, 1, N2)])
    rows = pa.table(
        {
            "id": [f"t{i}" for i in range(N1 + N2)],
            "domain": [FORGET] * N1 + [RETAIN] * N2,
            "log_density_ratio": ratio,
        }
    )
    return rows, ratio


def scored(examples: pa.Table, score: np.ndarray) -> pa.Table:
    rank = np.full(N1 + N2, np.nan)
    rank[:N1] = np.argsort(np.argsort(-score[:N1])) + 1
    columns = {"id": examples["id"], "domain": examples["domain"], "score": score}
    ranks = pa.array(rank, pa.float64(), from_pandas=True)
    return pa.table(columns | {"rank": ranks.cast(schemas.SCORES.schema.field("rank").type)})


def test_the_exact_ranking_has_no_regret_and_noise_has_more_of_it() -> None:
    examples, ratio = drawn()
    noise = np.random.default_rng(1).normal(size=len(ratio))
    found = []
    for scale in (0.0, 1.0, 4.0, 1e6):
        scores = scored(examples, ratio + scale * noise)
        truth = truth_of(examples, scores)
        assert truth is not None
        found.append(regrets(scores, truth, BUDGETS, False))
    assert found[0] == (0.0, 0.0)
    assert (np.diff(np.array(found), axis=0) > 0).all()


def test_it_is_the_mean_over_budgets_of_what_the_exact_set_gains() -> None:
    examples, ratio = drawn()
    reversed_, best = scored(examples, -ratio), scored(examples, ratio)
    truth = truth_of(examples, best)
    assert truth is not None
    counts = (BUDGETS * N1).astype(int)
    ours, theirs = (exact(ranking_of(each, False), truth, counts) for each in (reversed_, best))
    expected = ((theirs[0] - ours[0]).mean(), (ours[1] - theirs[1]).mean())
    assert regrets(reversed_, truth, BUDGETS, False) == pytest.approx(expected, abs=1e-12)


def test_a_ranked_text_without_a_ratio_has_no_truth() -> None:
    examples, ratio = drawn()
    scores = scored(examples, ratio)
    ratio[3] = np.nan
    unknown = examples.set_column(2, "log_density_ratio", pa.array(ratio))
    assert truth_of(unknown, scores) is None
