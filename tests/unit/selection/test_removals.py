"""Budgets, the frontier against exact sums, manifests, and the two stages from end to end."""

import hashlib
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.evidence.confounds import read_texts
from mamushi.evidence.manifest import Calibrated, Ranked, manifest
from mamushi.evidence.stability import rankings, stability_columns
from mamushi.evidence.verdict import separation
from mamushi.io import schemas
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import (
    read_metadata,
    read_table,
    write_table,
)
from mamushi.registry import plugins
from mamushi.selection.metrics import spearman
from mamushi.selection.removals import budget_size, removal_list
from tests.support import divergences
from tests.support.divergences import preservation_by_importance
from tests.support.score_files import ROWS, ranks_of, write_embeddings, write_examples

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
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1, n1 + n2) if column is None else column
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
    return Calibrated(ratio, lost, "own", withheld, withheld)


def top(**more):
    """What is known of a ranking: its own AUC, and that it was made three times."""
    auc = {"auc": 0.95, "auc_low": 0.9, "auc_high": 0.97, "matched": None, "matched_low": None}
    listed = {"rankings": 3, "expected_overlap": 0.9, "surely": 11, "toss_up": 1}
    return Ranked("own", {**auc, "follows": []}, listed, **more)


def dropped(*rows):
    """A table of duplicates, of (id, kept_id, reason)."""
    columns = zip(*((*row, f"text of {row[0]}") for row in rows), strict=True)
    return pa.table(
        {
            name: pa.array(column, pa.string())
            for name, column in zip(
                schemas.DUPLICATES.schema.names, columns if rows else [()] * 4, strict=True
            )
        }
    )


def test_removals_are_the_top_by_rank_and_nested():
    table = scores_table()
    before: set[str] = set()
    for k in range(0, 41, 5):
        found = removal_list(table, dropped(), k)
        assert found["rank"].to_pylist() == list(range(1, k + 1))
        ids = set(found["id"].to_pylist())
        assert len(ids) == k
        assert before <= ids
        before = ids
    score = table["score"].to_numpy()[:40]
    assert found["score"].to_pylist() == sorted(score, reverse=True)


def test_copies_go_with_the_example_that_they_were_collapsed_into():
    table = scores_table()
    first, second, third, last = (
        removal_list(table, dropped(), 40)["id"].to_pylist()[i] for i in (0, 1, 2, -1)
    )
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
    found = removal_list(table, duplicates, 3)
    assert found["id"].to_pylist() == [first, second, third]
    assert found["copies"].to_pylist() == [["a", "z"], [], ["b"]]
    assert found["copies_sha256"].to_pylist() == [["text of a", "text of z"], [], ["text of b"]]
    for k, copies in ((0, 0), (1, 2), (2, 2), (3, 3), (40, 4)):
        told = manifest(table, ratio_of(table), duplicates, k, top(), {})
        assert (told["removed"], told["copies"], told["cross_posts"]) == (k, copies, 2)
        bare = manifest(table, ratio_of(table), dropped(), k, top(), {})
        assert told["ids_sha256"] == bare["ids_sha256"]
        assert (bare["copies"], bare["cross_posts"]) == (0, 0)


def expected(scores, ratio, k, by_chance):
    told = manifest(scores, ratio_of(ratio), dropped(), k, top(by_chance=by_chance), {})
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
        return manifest(scores, ratio_of(table), dropped(), k, top(), {})["also_retain"]

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


@pytest.fixture
def world(tmp_path):
    """Embeddings, and examples with a truth, on disk."""
    rng = np.random.default_rng(0)
    n, d = 400, 4
    forget = rng.random(n) < 0.25
    x = rng.normal(0, 1, (n, d)) + 1.5 * forget[:, None] * np.array([1, 0, 0, 0])
    ids = [f"t{i:03d}" for i in range(n)]
    domain = np.where(forget, "forget", "retain").tolist()
    about = {"inputs": {"model_card": "digest"}, "settings": {"embedding": {"layer": -1}}}
    write_embeddings(tmp_path / "embeddings.parquet", ids, domain, x.astype(np.float16), about)
    truth = 1.5 * x[:, 0] - 1.125
    write_examples(tmp_path / "examples.parquet", ids, domain, log_density_ratio=truth)
    write_table(
        tmp_path / "duplicates.parquet",
        schemas.DUPLICATES,
        dropped(*((f"copy of {i}", i, "near") for i in ids), ("both", None, "cross_post")),
        metadata={"examples": sha256(tmp_path / "examples.parquet"), "rows": ROWS},
    )
    return tmp_path


def defaults(kind):
    known = plugins("selector")
    return known[kind].defaults if kind in known else {}


def score(folder, selector, *extra, kind=None, **settings):
    kind = kind or selector
    given = {**defaults(kind), **settings}
    told = {"selector": selector, "kind": kind, "settings": given, "seed": 3, "code": "digest"}
    command = ["score", "--examples", folder / "examples.parquet", "--embeddings",
               folder / "embeddings.parquet", "--out", folder / f"{selector}.parquet",
               *extra, "--settings", json.dumps(told)]  # fmt: skip
    return main([str(c) for c in command])


def run(*commands):
    """The first exit status that is not 0, else 0."""
    return next((code for c in commands if (code := main([str(word) for word in c]))), 0)


def calibrate(folder, selector, **settings):
    """The refits of a selector and its calibrated ratio."""
    given = {**defaults(selector), **settings}
    scored = {"selector": selector, "kind": selector, "settings": given, "seed": 3, "code": "0"}
    told = {"dataset": "synthetic", "model": "tiny", "seed": 3, "selector": selector}
    again = folder / f"{selector}_refits.parquet"
    return run(
        ["refits", "--examples", folder / "examples.parquet", "--embeddings",
         folder / "embeddings.parquet", "--out", again,
         "--settings", json.dumps({**scored, "whole": 2, "halves": 2})],
        ["calibrate", "--scores", folder / f"{selector}.parquet", "--refits", again,
         "--examples", folder / "examples.parquet", "--embeddings", folder / "embeddings.parquet",
         "--out", folder / f"{selector}_calibrated.parquet",
         "--checks", folder / "calibration.parquet",
         "--settings", json.dumps({**told, "resamples": 40})],
    )  # fmt: skip


def remove(folder, selector, beta, ratio="mamushi", kind=None, **settings):
    """The removal list, then its manifest."""
    kind = kind or selector
    given = {
        **{"dataset": "synthetic", "model": "tiny", "seed": 3, "selector": selector, "kind": kind},
        **{"settings": {**defaults(kind), **settings}, "budgets": [beta]},
        **{"compared": None, "by_chance": kind == "random"},
    }
    made = folder / f"{selector}.parquet"
    both = ["--scores", made, "--duplicates", folder / "duplicates.parquet"]
    both += ["--examples", folder / "examples.parquet"]
    budget = json.dumps({"beta": beta})
    stable = folder / "stability.parquet"
    scores = read_table(made, schemas.SCORES)
    columns, about = stability_columns(*rankings(scores, []), [beta])
    texts = read_texts(
        folder / "examples.parquet", folder / "duplicates.parquet", scores["id"].to_pylist()
    )
    about["separation"] = separation(scores, [], texts)
    write_table(stable, schemas.STABILITY, columns, metadata=about)
    return run(
        ["remove", *both, "--out", folder / "beta.parquet", "--settings", budget],
        ["manifests", *both, "--calibrated", folder / f"{ratio}_calibrated.parquet",
         "--stability", stable,
         "--out", folder / "beta.json", "--settings", json.dumps(given)],
    )  # fmt: skip


SMALL = {"hidden": [16], "batch_size": 64, "seeds_averaged": 1}


def test_score_and_remove_from_end_to_end(world):
    assert score(world, "mamushi", **SMALL) == 0
    table = read_table(world / "mamushi.parquet", schemas.SCORES)
    forget = np.array(table["domain"].to_pylist()) == "forget"
    ranked = table.filter(forget).sort_by("rank")
    n1 = int(forget.sum())
    assert ranked["rank"].to_pylist() == list(range(1, n1 + 1))
    assert ranked["score"].to_pylist() == sorted(ranked["score"].to_pylist(), reverse=True)
    stored = read_metadata(world / "mamushi.parquet")
    assert stored["provenance"]["inputs"]["embeddings"] == sha256(world / "embeddings.parquet")
    assert stored["details"]["auc"] > 0.7
    assert stored["details"]["spearman_with_truth"] > 0.5

    assert calibrate(world, "mamushi", **SMALL) == 0
    ratio = read_table(world / "mamushi_calibrated.parquet", schemas.CALIBRATED)
    assert spearman(ratio["score"].to_numpy(), ratio["log_ratio"].to_numpy()) > 0.98
    about = read_metadata(world / "mamushi_calibrated.parquet")
    assert about["verdict"]["auc"] == pytest.approx(stored["details"]["auc"])
    assert remove(world, "mamushi", 0.3) == 0
    k = n1 * 3 // 10
    removed = read_table(world / "beta.parquet", schemas.REMOVALS)
    assert removed["id"].to_pylist() == ranked["id"].to_pylist()[:k]
    told = read_json(world / "beta.json")
    assert (told["selector"], told["beta"], told["settings"]["alpha"]) == ("mamushi", 0.3, 0.1)
    assert (told["removed"], told["n_forget"], told["n_retain"]) == (k, n1, 400 - n1)
    assert removed["copies"].to_pylist() == [[f"copy of {i}"] for i in removed["id"].to_pylist()]
    assert (told["copies"], told["cross_posts"]) == (k, 1)
    assert told["threshold"] == removed["score"][-1].as_py()
    lines = "".join(f"{i}\n" for i in removed["id"].to_pylist())
    assert told["ids_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert told["provenance"]["embedding"] == {"layer": -1}
    assert told["separation"]["auc"] == pytest.approx(stored["details"]["auc"])
    assert f"AUC {stored['details']['auc']:.2f} [" in told["verdict"]
    assert 0 <= told["also_retain"]["estimate"] < told["also_retain"]["upper_bound"] <= 1
    first = (world / "beta.json").read_bytes(), (world / "beta.parquet").read_bytes()
    assert remove(world, "mamushi", 0.3) == 0
    assert first == ((world / "beta.json").read_bytes(), (world / "beta.parquet").read_bytes())
