"""What ranked a list, fitted to all texts of its cell, as a file that scores other texts.

The file has the weights of fitted logistic regressions: ``intercept`` (1,), and of each kind of
features ``KIND.weights`` (d,); of words also the ``KIND.columns`` (d,) that these are among all
hashed ones, and how rare they are, ``KIND.rarity`` (d,).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError, located
from mamushi.io import digests, paths
from mamushi.io.digests import provenance
from mamushi.io.files import atomic, header, read_json
from mamushi.io.tables import read_metadata
from mamushi.lm.tokens import CHATS
from mamushi.registry import plugin
from mamushi.selection import linear
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.pool import Pool
from mamushi.selection.scores import read_pool
from mamushi.selection.statistics import sums
from mamushi_curate.vectors.word_vectors import WordComponents, count_words, fit_components
from mamushi_extras.doors.scorers import COMPONENTS, NGRAMS, UNITS, VECTORS
from mamushi_extras.words.ngrams import count_ngrams
from mamushi_extras.words.stacking import combine, embedding, fit_standardised, inner_scores, ngrams

Weights = dict[str, NDArray[Any]]


def fit_whole(pool: Pool, kind: str, settings: Mapping[str, Any], seed: int) -> Weights:
    """Fit a selector to all examples of a pool. Raises ``UserError`` for one that is no sum over
    features, and as the selector does."""
    fits = {"mamushi_lr": fit_vectors, "mamushi_words": fit_standard_sum, "stack": fit_stack}
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


def fit_vectors(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    """Fit ``mamushi_lr``."""
    if settings["solver"] == "sgd":
        return _of_vectors(linear.fit_sgd(task, settings), task.mean, task.scale)
    return _of_vectors(linear.fit_exactly(task, settings["alpha"]), task.mean, task.scale)


def fit_standard_sum(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    """Fit ``mamushi_words``: each part has mean 0 and standard deviation 1 over what it is fitted
    to."""
    if "words" in pool.columns:
        problem = "'mamushi_words' has its words from a screen"
        raise UserError(problem, do="rank by another selector")
    vectors = fit_vectors(pool, task, {**settings, "solver": "newton-cholesky"})
    x = pool.embeddings[task.train].astype(np.float64)
    logits = x @ vectors[f"{VECTORS}.weights"] + vectors["intercept"]
    counts = count_words(pool.texts)
    words, logits_of_words = _of_words(task, UNITS, counts, settings["prior"])
    both = (logits, logits_of_words)
    factors = [1 / (by.std() or 1.0) for by in both]
    shift = -sum(by.mean() * factor for by, factor in zip(both, factors, strict=True))
    return _weighted_sum([vectors, words], factors, shift)


def fit_stack(pool: Pool, task: Task, settings: Mapping[str, Any]) -> Weights:
    """Fit ``stack``."""
    counts = dict(zip(NGRAMS, count_ngrams(pool.texts), strict=True))
    prior = settings["ngrams_prior"]
    members = [embedding(settings["prior"]), *(ngrams(matrix, prior) for matrix in counts.values())]
    scores = inner_scores(task, members, settings["folds"])
    ends = np.vstack([np.zeros(3), np.eye(3)])
    at_zero, *along = combine(scores, task.forget[task.train], ends)
    fits = [_of_vectors(*fit_standardised(task, settings["prior"]))]
    for kind, matrix in counts.items():
        fits.append(_of_words(task, kind, matrix, prior, "liblinear", 1e-2)[0])
    return _weighted_sum(fits, np.array(along) - at_zero, at_zero)


def _of_vectors(model: Any, mean: NDArray[Any], scale: NDArray[Any]) -> Weights:
    """Return the weights of vectors by a ``model`` of standardised ones."""
    weights = model.coef_[0].astype(np.float64) / scale
    intercept = np.array([float(model.intercept_[0] - mean @ weights)])
    return {"intercept": intercept, f"{VECTORS}.weights": weights}


def _of_words(
    task: Task, kind: str, counts: sparse.csr_matrix, prior: float, *solver: Any
) -> tuple[Weights, Doubles]:
    """Return the weights by a logistic regression on the tf-idf of words, of which there are
    ``counts`` (n, d), and the logits of the training texts."""
    training = counts[task.train]
    columns, tfidf = np.unique(training.indices), TfidfTransformer(sublinear_tf=True)
    x = tfidf.fit_transform(training[:, columns])
    model = linear.logistic(x, task.forget[task.train], prior, *solver)
    weights: Weights = {
        "intercept": model.intercept_.astype(np.float64),
        f"{kind}.weights": model.coef_[0].astype(np.float64),
        f"{kind}.columns": columns.astype(np.int32),
        f"{kind}.rarity": tfidf.idf_,
    }
    return weights, linear.decide(model, x)


def _weighted_sum(parts: Sequence[Weights], factors: Sequence[float], shift: float) -> Weights:
    """Return the sum of weights of different features, each times its factor, and a ``shift``."""
    total: Weights = {"intercept": np.array([shift])}
    for weights, factor in zip(parts, factors, strict=True):
        scaled = {k: factor * x if k.endswith(".weights") else x for k, x in weights.items()}
        total |= scaled | {"intercept": total["intercept"] + factor * weights["intercept"]}
    return total


def of_words_alone(weights: Weights, components: WordComponents) -> Weights:
    """Return weights of vectors of words as those of the words."""
    directions = components.directions.astype(np.float64)
    by_word: Weights = {
        f"{COMPONENTS}.weights": directions.T @ weights[f"{VECTORS}.weights"],
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
    patterns = (paths.SCORES, paths.EXAMPLES, paths.EMBEDDINGS, paths.MODEL_CARD)
    scores, examples, embeddings, card = (paths.under(pattern=p, **where) for p in patterns)
    listing, ranked = read_metadata(listed), read_metadata(scores)
    if ranked.get("windows"):
        raise UserError("ranks documents by windows", where=listed, do="rank them as a whole")
    origin, embedded = ranked["provenance"], ranked["embedded"]
    expected = {
        examples: listing["provenance"]["inputs"]["examples"],
        embeddings: origin["inputs"]["embeddings"],
    }
    settings, how = origin["settings"], embedded["settings"]["embedding"]
    width, vectors = how.get("words"), None
    if width is None:
        is_chat = CHATS in pq.read_schema(examples).names
        if "pooling" not in how or "trained" in embedded["inputs"] or is_chat:
            problem = "its vectors are not those of texts by a model as it is, and none are made"
            do = "rank by words alone, or by a model as it is"
            raise UserError(problem, where=embeddings, do=do)
        expected[card] = embedded["inputs"]["model_card"]
        about = read_json(card)
        names = ("pooling", "skip_bos", "max_length", "precision", "layer")
        vectors = {name: how[name] for name in names}
        vectors |= {name: about[name] for name in ("revision", "digests", "source")}
        if about["revision"] is None:
            vectors["source"] = str((card.parent / about["source"]).resolve())
    for path, digest in expected.items():
        if digests.of(path) != digest:
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {listed}", where=path, do=do)
    reads_texts = plugin("selector", settings["kind"]).reads_texts
    pool = read_pool(embeddings, examples, texts=reads_texts or width is not None)
    if width is not None and pool.texts is not None:
        components, of_words = fit_components(pool.texts.tolist(), width)
        pool = replace(pool, embeddings=of_words)
    with located(listed):
        weights = fit_whole(pool, settings["kind"], settings["settings"], settings["seed"])
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
