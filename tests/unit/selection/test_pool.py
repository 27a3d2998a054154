"""The pool, its ranking, folds, statistics and rank measures."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from mamushi.errors import UserError
from mamushi.io import schemas, tables
from mamushi.io.tables import write_table
from mamushi.selection import pool as pool_module
from mamushi.selection.folds import stratified_folds
from mamushi.selection.metrics import auc, average_ranks, spearman
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.scores import rank_forget, read_pool
from mamushi.selection.statistics import sum_groups
from tests.support.score_files import write_examples


def write_inputs(folder, embeddings, ids, domains, *, listed=None, listed_domains=None):
    """Another section has other examples, which are none of the pool's business."""
    paths = folder / "embeddings.parquet", folder / "examples.parquet"
    x = np.asarray(embeddings, dtype=np.float16)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
    columns = {"id": ids, "domain": domains, "embedding": vectors}
    write_table(paths[0], schemas.EMBEDDINGS, columns)
    listed, domains = listed or ids, listed_domains or domains
    more = {"text": ["words"] * (len(listed) + 1)}
    more["section"] = ["inference"] * len(listed) + ["evaluation"]
    write_examples(paths[1], [*listed, "other"], [*domains, "forget"], **more)
    return paths


IDS = ["b", "a", "c"]
DOMAINS = ["forget", "retain", "forget"]
VECTORS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_a_large_matrix_is_mapped_and_the_same(tmp_path, monkeypatch):
    x, ids = np.random.default_rng(0).normal(size=(40, 6)), [f"t{i}" for i in range(40)]
    paths = write_inputs(tmp_path, x, ids, ["forget", "retain"] * 20)
    pq.write_table(pq.read_table(paths[0]), paths[0], row_group_size=16, compression="none")
    plain = read_pool(*paths)
    monkeypatch.setattr(tables, "MAPPED", 40 * 6 * 2)
    mapped = read_pool(*paths)
    assert isinstance(mapped.embeddings.base, np.memmap)
    assert plain.embeddings.base is None
    assert np.array_equal(mapped.embeddings, plain.embeddings)
    assert not mapped.embeddings.flags.writeable
    # The file has no name that a killed job could leave behind.
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}


OTHERS = "its examples are not those of"


@pytest.mark.parametrize(
    ("vectors", "examples", "message"),
    [
        ([*VECTORS[:2], [5, np.nan]], {}, r"embeddings\.parquet: the embedding of 'c' holds NaN"),
        (VECTORS, {"listed": IDS[::-1]}, OTHERS),
        (VECTORS, {"listed_domains": ["forget"] * 3}, OTHERS),
    ],
)
def test_tables_that_do_not_fit_are_refused(vectors, examples, message, tmp_path):
    with pytest.raises(UserError, match=message):
        read_pool(*write_inputs(tmp_path, vectors, IDS, DOMAINS, **examples))


def test_rank_is_by_score_then_id_or_by_the_order_of_a_selector():
    ids = np.array(["d", "b", "x", "a", "c"], dtype=object)
    scores, forget = np.array([1.0, 1.0, 9.0, 0.0, 2.0]), np.array([1, 1, 0, 1, 1], bool)
    for rows in (np.arange(5), np.array([3, 1, 4, 0, 2])):
        pool = Pool(ids[rows], forget[rows], np.ones((5, 2), np.float16))
        assert pool.ids[rank_forget(pool, Scored(scores[rows]))].tolist() == ["c", "b", "d", "a"]
    members = np.flatnonzero(pool.forget)
    assert np.array_equal(rank_forget(pool, Scored(scores, order=members[::-1])), members[::-1])
    with pytest.raises(ValueError, match="no permutation"):
        rank_forget(pool, Scored(scores, order=members[1:]))
    with pytest.raises(ValueError, match="no finite score"):
        rank_forget(pool, Scored(np.full(5, np.nan)))


def test_fold_statistics_equal_standard_scaler(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, (500, 6)).astype(np.float16)
    x[:, 1] = 7.7  # a constant column with a large mean
    ids = np.array([f"t{i:04d}" for i in rng.permutation(500)], dtype=object)
    pool = Pool(ids, rng.random(500) < 0.3, x)
    monkeypatch.setattr(pool_module, "BLOCK_BYTES", 8 * 6 * 64)
    fold = stratified_folds(pool.forget, 5, seed=3)
    totals = sum_groups(pool, fold, 5)
    for i in range(5):
        mean, scale = totals.mean_and_scale([j for j in range(5) if j != i])
        scaler = StandardScaler().fit(pool.embeddings[fold != i].astype(np.float64))
        np.testing.assert_allclose(mean, scaler.mean_, rtol=1e-12)
        np.testing.assert_allclose(scale, scaler.scale_, rtol=1e-12)
        assert scale[1] == 1.0


def test_rank_measures_against_scipy_and_sklearn():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 20, 300).astype(float), rng.integers(0, 20, 300).astype(float)
    b += a
    forget = rng.random(300) < 0.3
    assert auc(b, forget) == pytest.approx(roc_auc_score(forget, b), abs=1e-14)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-14)
    assert spearman(a, np.ones(300)) is None
    assert average_ranks(np.array([5.0, 1.0, 5.0])).tolist() == [2.5, 1.0, 2.5]
