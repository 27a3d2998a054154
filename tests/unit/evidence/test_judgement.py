"""What follows for a list from all that is known of it: from its own scores, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.config import selectors as settings
from mamushi.evidence.confounds import TextProperties
from mamushi.evidence.verdict import auc_interval, judge_list, separation
from mamushi.io import schemas
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Scored
from mamushi.selection.refits import WHOLE_REFIT
from tests.support.score_files import domains, ranks_of

N1, N2 = 80, 120
FORGET = np.arange(N1 + N2) < N1
OWN = {
    **{"auc": 0.95, "auc_low": 0.9, "auc_high": 0.97, "matched": 0.94, "matched_low": 0.88},
    "follows": [],
}
LISTED = {"rankings": 6, "expected_overlap": 0.9, "surely": 18, "toss_up": 2}
RETAIN = {"estimate": 0.02, "upper_bound": 0.3}


def scores_table(score: Any) -> pa.Table:
    rank = [*ranks_of(score[:N1]).tolist(), *[None] * N2]
    about = {"id": [f"t{i}" for i in range(N1 + N2)], "domain": domains(FORGET)}
    columns = {**about, "score": pa.array(score, from_pandas=True), "rank": rank}
    columns["fold"] = pa.nulls(N1 + N2, pa.int16())
    return pa.table(columns, schema=schemas.SCORES.schema)


def texts(words: Any = None, **labels: Any) -> TextProperties:
    rng = np.random.default_rng(1)
    length = rng.integers(5, 50, N1 + N2).astype(float) if words is None else words
    return TextProperties(length, np.zeros(N1 + N2), labels)


def test_a_ranking_is_judged_by_its_own_scores() -> None:
    score = np.random.default_rng(0).normal(size=N1 + N2) + 2 * FORGET
    found = separation(scores_table(score), [], texts())
    assert found["auc"] == pytest.approx(auc(score, FORGET))
    assert [found["auc_low"], found["auc_high"]] == pytest.approx(auc_interval(score, FORGET)[1:])
    assert found["auc_low"] < found["matched"] and found["follows"] == []
    # What another run of it would find widens the interval.
    again = [(WHOLE_REFIT, i, Scored(score + i * FORGET)) for i in range(2)]
    assert separation(scores_table(score), again, texts())["auc_low"] < found["auc_low"]
    hidden = separation(scores_table(np.where(FORGET, score, np.nan)), [], texts())
    assert hidden["auc"] is hidden["auc_low"] is hidden["matched"] is None


def test_what_else_the_scores_follow_is_named() -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(5, 500, N1 + N2) + 600.0 * FORGET
    kind = np.where(rng.random(N1 + N2) < 0.5, "rant", "joke").astype(object)
    score = words + rng.normal(0, 30, N1 + N2) + 400 * (kind == "rant")
    found = separation(scores_table(score), [], texts(words, label_kind=kind))
    named = {(each["confound"], each["value"]) for each in found["follows"]}
    assert {("words", None), ("label_kind", "rant")} <= named
    said = judge_list({**OWN, **found}, 20, LISTED, RETAIN)
    assert said["act"] == "check"
    assert "the scores follow " in said["words"]
    assert "the number of words (rank correlation 0." in said["words"]
    assert "kind 'rant' (AUC 0." in said["words"]


@pytest.mark.parametrize(
    ("own", "listed", "retain", "act", "said"),
    [
        ({}, {}, {}, "take", "2 of 20 texts are toss-ups: not all 6 rankings list them"),
        ({}, {}, {"upper_bound": 0.68}, "check", "2% of it looks like texts to keep, at most 68%"),
        ({}, {"toss_up": 9}, {}, "check", "9 of 20 texts are toss-ups"),
        ({"auc_low": 0.7}, {}, {}, "check", "moderate separation, AUC 0.95 [0.70, 0.97]"),
        ({"matched_low": 0.6}, {}, {}, "check", ", 0.94 among texts of the same length"),
        ({"auc_low": 0.6}, {}, {}, "refuse", "do not delete by this: weak separation, AUC"),
        ({"auc": None}, {}, {}, "unknown", "no verdict: the ranking has no score for retain texts"),
        ({}, {}, {"upper_bound": 0.9}, "check", "; how much of it looks like texts to keep is not"),
        ({}, {"toss_up": None, "rankings": 1}, {}, "check", "so its toss-ups are not known"),
    ],
)
def test_the_verdict_is_about_the_list(
    own: dict[str, Any], listed: dict[str, Any], retain: dict[str, Any], act: str, said: str
) -> None:
    nothing = {"auc_low": None, "matched_low": None} if "auc" in own else {}
    found = judge_list({**OWN, **nothing, **own}, 20, {**LISTED, **listed}, {**RETAIN, **retain})
    assert found["act"] == act
    assert said in found["words"]


def test_a_comparison_says_so_and_nothing_else() -> None:
    found = judge_list(OWN, 20, LISTED, RETAIN, compared="the ranking by mamushi upside down")
    assert found["act"] == "comparison"
    assert found["words"] == "a comparison, not to be acted on: the ranking by mamushi upside down"
    kinds = {
        "turned": {"kind": "anti_mamushi", "of": "mamushi_lr"},
        **{name: {"kind": name} for name in ("random", "mamushi_lr")},
    }
    config = {"selectors": kinds, "grid": {"selectors": ["random", "turned", "mamushi_lr"]}}
    assert settings.comparison(config, "turned") == "the ranking by mamushi_lr upside down"
    assert settings.comparison(config, "random") == "its order is drawn by chance"
    assert settings.comparison(config, "mamushi_lr") is None
    # The page opens with what is to be acted on, whatever the ratio is taken from.
    ordered = settings.leading_first({**config, "removal": {"ratio": "mamushi"}})
    assert ordered == ["mamushi_lr", "random", "turned"]
