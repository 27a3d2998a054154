"""What ranked a list, fitted to all texts of its cell, as a file that scores other texts.

The file has the weights of fitted logistic regressions: ``intercept`` (1,), and of each kind of
features ``KIND.weights`` (d,); of words also the ``KIND.columns`` (d,) that these are among all
hashed ones, and how rare they are, ``KIND.rarity`` (d,).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from mamushi.errors import UserError, located
from mamushi.io import digests, paths
from mamushi.io.digests import provenance
from mamushi.io.files import atomic, read_json
from mamushi.io.tables import read_metadata
from mamushi.io.tensors import header
from mamushi.lm.tokens import CHATS
from mamushi.registry import plugin
from mamushi.selection import linear
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.pool import Pool
from mamushi.selection.scores import read_pool
from mamushi.selection.stacking import combine, embedding, inner_scores, ngrams
from mamushi.selection.statistics import sums
from mamushi.selection.word_vectors import WordComponents, fit_components
from mamushi_extras.doors.scorers import CHARACTERS, COMPONENTS, UNITS, VECTORS, WORDS

Weights = dict[str, NDArray[Any]]


def fit_whole(pool: Pool, kind: str, settings: Mapping[str, Any], seed: int) -> Weights:
    """Fit a selector to all examples of a pool. Raises ``UserError`` for one that is no sum over
    features, and as the selector does."""
    fits = {
        "mamushi_lr": _mamushi_lr,
        "mamushi_words": _mamushi_words,
        "stack": _stack,
    }
    if kind not in fits:
        problem = f"{kind!r} is no weighted sum that can be saved"
        raise UserError(problem, do=f"rank by {', '.join(fits)}")
    return fits[kind](pool, whole_task(pool, settings, seed), settings)


def whole_task(pool: Pool, settings: Mapping[str, Any], seed: int) -> Task:
    """Return the task that fits to all examples, or the most that the selector fits to."""
    n = len(pool.ids)
    mean, scale = sums(pool, np.zeros(n, np.int64), 1).standard([0])
    train, none = np.arange(n), np.empty(0, np.int64)
    if settings["fit_sample"] is not None and n > settings["fit_sample"]:
        rng = np.random.default_rng(derive_seed(seed, SAMPLE))
        train = draw_sample(pool.forget, settings["fit_sample"], rng)
    return Task(pool.embeddings, pool.forget, train, none, mean, scale, seed, pool.groups)


def _embedding(task: Task, settings: Mapping[str, Any]) -> Weights:
    decide, mean, scale = linear.fit_standardised(task, settings["prior"])
    return _of_vectors(decide.model, mean, scale)


def _mamushi_lr(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    exact = settings["solver"] == "newton-cholesky"
    alpha = settings["alpha"]
    model = linear.fit_exactly(task, alpha).model if exact else linear.fit_sgd(task, settings)
    return _of_vectors(model, task.mean, task.scale)


def _mamushi_words(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    if "words" in pool.columns:
        problem = "'mamushi_words' has its words from a screen"
        raise UserError(problem, do="rank by another selector")
    vectors = _mamushi_lr(pool, task, {**settings, "solver": "newton-cholesky"})
    x = pool.embeddings[task.train].astype(np.float64)
    logits = x @ vectors[f"{VECTORS}.weights"] + vectors["intercept"]
    counts, y = linear.count_words(pool.texts), task.forget[task.train]
    words = _of_words(
        task, UNITS, counts, lambda x: linear.logistic(normalize(x), y, settings["prior"])
    )
    total: Weights = {"intercept": np.zeros(1)}
    for weights, by in ((vectors, logits), words):
        scale = by.std() or 1.0
        total = _add_scaled(total, weights, 1 / scale, -by.mean() / scale)
    return total


def _stack(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    counts = dict(zip((WORDS, CHARACTERS), linear.count_ngrams(pool), strict=True))
    prior, y = settings["ngrams_prior"], task.forget[task.train]
    members = [embedding(settings["prior"]), *(ngrams(matrix, prior) for matrix in counts.values())]
    scores = inner_scores(task, members, settings["folds"])
    at_zero, *along = combine(scores, y, np.vstack([np.zeros(3), np.eye(3)]))
    liblinear = partial(linear.logistic, y=y, variance=prior, solver="liblinear", tolerance=1e-2)
    fits = [_embedding(task, settings)]
    fits += [_of_words(task, name, matrix, liblinear)[0] for name, matrix in counts.items()]
    total: Weights = {"intercept": np.array([at_zero])}
    for weight, fit in zip(np.array(along) - at_zero, fits, strict=True):
        total = _add_scaled(total, fit, weight)
    return total


def _of_vectors(model: Any, mean: NDArray[Any], scale: NDArray[Any]) -> Weights:
    """Return the weights of vectors by a ``model`` of standardised ones."""
    weights = model.coef_[0].astype(np.float64) / scale
    intercept = np.array([float(model.intercept_[0] - mean @ weights)])
    return {"intercept": intercept, f"{VECTORS}.weights": weights}


def _of_words(
    task: Task,
    kind: str,
    counts: sparse.csr_matrix,
    fit: Callable[[sparse.csr_matrix], linear.Logistic],
) -> tuple[Weights, Doubles]:
    """Return the weights by what is fitted to the tf-idf of words, of which there are ``counts``
    (n, d), and the logits of the training texts."""
    training = counts[task.train]
    columns, tfidf = np.unique(training.indices), TfidfTransformer(sublinear_tf=True)
    x = tfidf.fit_transform(training[:, columns])
    decide = fit(x)
    weights: Weights = {
        "intercept": decide.model.intercept_.astype(np.float64),
        f"{kind}.weights": decide.model.coef_[0].astype(np.float64),
        f"{kind}.columns": columns.astype(np.int32),
        f"{kind}.rarity": tfidf.idf_,
    }
    return weights, decide(x)


def _add_scaled(total: Weights, weights: Weights, factor: float, shift: float = 0.0) -> Weights:
    """Return the sum with ``factor`` times weights of other features, and a ``shift``."""
    scaled = {k: factor * x if k.endswith(".weights") else x for k, x in weights.items()}
    intercept = total["intercept"] + (factor * weights["intercept"] + shift)
    return {**total, **scaled, "intercept": intercept}


def of_words_alone(weights: Weights, components: WordComponents) -> Weights:
    """Return weights of vectors of words as those of the words."""
    by_word: Weights = {
        f"{COMPONENTS}.weights": components.directions.astype(np.float64).T
        @ weights[f"{VECTORS}.weights"],
        f"{COMPONENTS}.columns": components.words.astype(np.int32),
        f"{COMPONENTS}.rarity": components.rarity,
    }
    return {k: x for k, x in weights.items() if not k.startswith(VECTORS)} | by_word


def write_scorer(listed: Path, out: Path) -> None:
    """Fit the selector of a list to all texts of its cell, and write it for ``read_scorer``.
    Raises ``UserError`` for a list that is no run's or is of an earlier one, for documents that
    were ranked by windows, for vectors that nothing here makes of other texts, and as
    ``fit_whole``."""
    where = paths.wildcards(paths.REMOVAL, listed.absolute())
    if where is None:
        do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
        raise UserError("is no list of a run", where=listed, do=do)
    at = partial(paths.under, **where)
    listing, ranked = read_metadata(listed), read_metadata(at(pattern=paths.SCORES))
    if ranked.get("windows"):
        raise UserError("ranks documents by windows", where=listed, do="rank them as a whole")
    origin, embedded = ranked["provenance"], ranked["embedded"]
    examples, embeddings = at(pattern=paths.EXAMPLES), at(pattern=paths.EMBEDDINGS)
    expected = {
        examples: listing["provenance"]["inputs"]["examples"],
        embeddings: origin["inputs"]["embeddings"],
    }
    settings, embedding = origin["settings"], embedded["settings"]["embedding"]
    kind, width = settings["kind"], embedding.get("words")
    card, vectors = at(pattern=paths.MODEL_CARD), None
    if width is None:
        if problem := _irreproducible(embedded, examples):
            do = "rank by words alone, or by a model as it is"
            problem = f"{problem}: of other texts there are none"
            raise UserError(problem, where=embeddings, do=do)
        expected[card] = embedded["inputs"]["model_card"]
        vectors = _described(embedding, card)
    for path, digest in expected.items():
        if digests.of(path) != digest:
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {listed}", where=path, do=do)
    texts = plugin("selector", kind).reads_texts or width is not None
    pool = read_pool(embeddings, examples, texts=texts)
    if width is not None and pool.texts is not None:
        components, of_words = fit_components(pool.texts.tolist(), width)
        pool = replace(pool, embeddings=of_words)
    with located(listed):
        weights = fit_whole(pool, kind, settings["settings"], settings["seed"])
    if width is not None:
        weights = of_words_alone(weights, components)
    rows = listing["rows"]
    # What is read of a row, where nothing else is known.
    read = {"text": rows.get("text") or "text", "part": rows.get("part") or "whole"}
    scorer = {"selector": where["selector"], **read, "vectors": vectors}
    made_from = provenance(settings, examples=examples, embeddings=embeddings)
    save_scorer(out, weights, {"scorer": scorer, "provenance": made_from})


def save_scorer(out: Path, weights: Weights, metadata: Mapping[str, Any]) -> None:
    """Write weights beside the metadata of a scorer."""
    tensors = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    with atomic(out) as draft:
        save_file(tensors, draft, metadata=header(metadata))


def _irreproducible(embedded: Mapping[str, Any], examples: Path) -> str | None:
    """Return why vectors cannot be made again of other texts with a model alone, if so."""
    if "pooling" not in embedded["settings"]["embedding"]:
        return "its vectors were made elsewhere"
    if "trained" in embedded["inputs"]:
        return "its vectors are of a model that the run has trained"
    if CHATS in pq.read_schema(examples).names:
        return "its vectors are of conversations"
    return None


def _described(embedding: Mapping[str, Any], model_card: Path) -> dict[str, Any]:
    """Return how texts become the vectors that are weighed."""
    card = read_json(model_card)
    source = card["source"]
    if card["revision"] is None:
        source = str((model_card.parent / source).resolve())
    return {
        **{name: embedding[name] for name in ("pooling", "skip_bos", "max_length", "precision")},
        "layers": [embedding["layer"]],
        "source": source,
        **{name: card[name] for name in ("revision", "digests")},
    }
