"""Of the windows of a document that is removed as a whole, one score."""

from dataclasses import replace

import numpy as np

from mamushi.registry import plugin
from mamushi.selection.crossfit import Task
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.scores import rank_forget
from mamushi_extras.windows.windows import DOCUMENT, keep_best_windows, score_documents

CODES = np.array([0, 1, 0, 1, 2, 2, 2])
OWN = np.array([3.0, 1.0, 0.0, 1.5, 700.0, -5.0, 2.0])


def pool() -> Pool:
    ids = np.array([f"{code}#{i}-{i + 1}" for i, code in enumerate(CODES)], dtype=object)
    forget = CODES < 2
    found = Pool(ids, forget, np.zeros((7, 1), np.float16), groups=CODES)
    return replace(found, columns={DOCUMENT: CODES})


def test_a_document_has_the_mean_ratio_of_its_windows() -> None:
    found = score_documents(Scored(OWN), pool(), by_chance=False)
    wanted = [np.log(np.exp(OWN[code == CODES]).mean()) for code in CODES]
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-5)
    # Document after document.
    assert rank_forget(pool(), found).tolist() == [0, 2, 1, 3]
    found = score_documents(Scored(OWN), pool(), by_chance=True)
    np.testing.assert_allclose(found.scores, OWN[[0, 1, 0, 1, 4, 4, 4]], atol=1e-3)
    found = score_documents(Scored(OWN, order=np.array([3, 0, 2, 1])), pool(), by_chance=False)
    assert found.order is not None and found.order.tolist() == [3, 1, 0, 2]
    # A selector without scores of retain texts has none then.
    own = np.where(pool().forget, OWN, np.nan)
    found = score_documents(Scored(own), pool(), by_chance=False)
    assert np.isnan(found.scores).tolist() == (~pool().forget).tolist()


N, EACH = 40, 8


def planted(shift: float, seed: int = 0) -> tuple[Pool, np.ndarray]:
    """As many forget as retain documents of eight windows, of which one of each forget document is
    shifted; and which windows these are."""
    rng, documents = np.random.default_rng(seed), np.repeat(np.arange(2 * N), EACH)
    forget, x = documents < N, rng.normal(size=(2 * N * EACH, 10))
    own = forget & (np.arange(len(x)) % EACH == documents % EACH)
    x[own, 0] += shift
    ids = np.array([f"{i:04}" for i in range(len(x))], dtype=object)
    found = Pool(ids, forget, x.astype(np.float16), groups=documents)
    return replace(found, columns={DOCUMENT: documents}, fold_steps=(keep_best_windows,)), own


def found(pool: Pool) -> float:
    """How well documents are told apart."""
    selector = plugin("selector", "mamushi_lr").defaults | {"solver": "newton-cholesky"}
    scored = plugin("selector", "mamushi_lr").code.score(pool, selector, 0)
    scores = score_documents(scored, pool, by_chance=False).scores
    return float(auc(scores[::EACH], pool.forget[::EACH]))


def test_an_estimator_learns_from_the_best_window_of_a_forget_document() -> None:
    pool, own = planted(4.0)
    assert pool.groups is not None
    documents = pool.columns[DOCUMENT]
    train = np.flatnonzero(pool.groups % 5 > 0)
    moments = pool.embeddings.mean(axis=0, dtype=float), pool.embeddings.std(axis=0, dtype=float)
    task = Task(pool.embeddings, pool.forget, train, train[:0], *moments, 0, pool.groups)
    kept = keep_best_windows(task, pool).train
    assert {*kept} >= {*train[~pool.forget[train]]} and {*kept} <= {*train}
    chosen = kept[pool.forget[kept]]
    assert [*documents[chosen]] == [*np.unique(documents[train][pool.forget[train]])]
    # One of eight by chance.
    assert own[chosen].mean() >= 0.5
    assert found(pool) > found(replace(pool, fold_steps=())) + 0.05


def test_no_window_is_chosen_by_the_label_of_a_text_that_is_scored() -> None:
    """Where nothing tells documents apart, nothing is found."""
    assert abs(np.mean([found(planted(0.0, seed)[0]) for seed in range(8)]) - 0.5) < 0.08
