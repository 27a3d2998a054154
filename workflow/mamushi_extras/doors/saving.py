"""A stack that ranked a list, fitted to all texts, as a file that scores others.

The file has ``intercept`` (1,), and of each kind of terms the ``KIND.columns`` (d,) that they are
among all hashed ones, how rare they are, ``KIND.rarity`` (d,), and ``KIND.weights`` (d,). Vectors
of a model have ``vectors`` (width,), their weights, and the metadata say how they are made.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError, located
from mamushi.io import digests, paths
from mamushi.io.digests import provenance
from mamushi.io.files import atomic, header, read_json
from mamushi.io.tables import read_metadata
from mamushi.lm.tokens import CHATS
from mamushi.selection import linear
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.pool import Pool
from mamushi.selection.scores import read_pool
from mamushi_curate.listed import read_list
from mamushi_curate.vectors.word_vectors import WordComponents, fit_components
from mamushi_extras.doors.scorers import KINDS, VECTORS
from mamushi_extras.words.ngrams import count_ngrams
from mamushi_extras.words.stacking import (
    MEMBERS,
    combine,
    fit_standardised,
    inner_scores,
    stacked_logits,
)

Weights = dict[str, NDArray[Any]]


def task_of_all(pool: Pool, most: int | None, seed: int) -> Task:
    """Return the task that fits to all examples, or to ``most`` of them."""
    train, none = np.arange(len(pool.ids)), np.empty(0, np.int64)
    if most is not None and len(train) > most:
        rng = np.random.default_rng(derive_seed(seed, SAMPLE))
        train = draw_sample(pool.forget, most, rng)
    # The stack standardises by itself.
    unused = np.empty(0)
    return Task(pool.embeddings, pool.forget, train, none, unused, unused, seed, pool.groups)


def fit_stack(
    pool: Pool, components: WordComponents | None, settings: Mapping[str, Any], seed: int
) -> Weights:
    """Fit ``stack`` to all examples of a pool. Where its vectors are the ``components`` of its
    words, the weight of a vector becomes one of every word."""
    task = task_of_all(pool, settings["fit_sample"], seed)
    forget, counts = task.forget[task.train], count_ngrams(pool.texts)
    scores = inner_scores(task, stacked_logits(task, counts, settings), settings["folds"])
    # What the sum of members is where all are 0, and where one of them is 1.
    ends = np.vstack([np.zeros(MEMBERS), np.eye(MEMBERS)])
    at_zero, *at_one = combine(scores, forget, ends)
    factors = np.array(at_one) - at_zero

    model, mean, scale = fit_standardised(task, settings["prior"])
    along = model.coef_[0].astype(np.float64) / scale
    intercept = at_zero + factors[0] * float(model.intercept_[0] - mean @ along)
    terms, saved = {}, dict[str, NDArray[Any]]()
    if components is None:
        saved[VECTORS] = factors[0] * along
    else:
        by_word = components.directions.astype(np.float64).T @ (factors[0] * along)
        terms[KINDS[0]] = (components.words, components.rarity, by_word)
    for kind, factor, of_kind in zip(KINDS[1:], factors[1:], counts, strict=True):
        training, tfidf = of_kind[task.train], TfidfTransformer(sublinear_tf=True)
        columns = np.unique(training.indices)
        x = tfidf.fit_transform(training[:, columns])
        model = linear.fit_logistic(x, forget, settings["ngrams_prior"], "liblinear", 1e-2)
        terms[kind] = (columns, tfidf.idf_, factor * model.coef_[0].astype(np.float64))
        intercept += factor * float(model.intercept_[0])
    saved["intercept"] = np.array([intercept])
    for kind, (columns, rarity, weights) in terms.items():
        saved[f"{kind}.columns"] = columns.astype(np.int32)
        saved |= {f"{kind}.rarity": rarity, f"{kind}.weights": weights}
    return saved


def write_scorer(listed: Path, out: Path) -> None:
    """Fit the stack of a list to all texts of its cell, and write it for ``read_scorer``. Raises
    ``UserError`` as ``read_list`` and ``of_run``, for another selector, and for vectors that are of
    another run or that nothing here makes of other texts."""
    this_list = read_list(listed)
    examples, place = this_list.of_run("examples"), this_list.place or {}
    patterns = (paths.SCORES, paths.EMBEDDINGS, paths.MODEL_CARD)
    scores, embeddings, card = (paths.under(pattern=p, **place) for p in patterns)
    ranked, rows = read_metadata(scores), this_list.rows or {}
    settings, embedded = ranked["provenance"]["settings"], ranked["embedded"]
    how, inputs = embedded["settings"]["embedding"], embedded["inputs"]
    is_chat = CHATS in pq.read_schema(examples).names
    is_made = "words" in how or ("pooling" in how and "trained" not in inputs and not is_chat)
    if settings["kind"] != "stack" or not is_made or ranked.get("windows"):
        do = "rank whole texts with the selector stack, by words alone or by a model as it is"
        raise UserError("is no ranking that scores other texts", where=listed, do=do)
    made_from = {embeddings: ranked["provenance"]["inputs"]["embeddings"]}
    if "words" not in how:
        made_from[card] = inputs["model_card"]
    for path, digest in made_from.items():
        if digests.of(path) != digest:
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {listed}", where=path, do=do)
    pool = read_pool(embeddings, examples, texts=True)
    assert pool.texts is not None
    components, pooled = None, None
    if "words" in how:
        components, vectors = fit_components(pool.texts.tolist(), how["words"])
        pool = replace(pool, embeddings=vectors)
    else:
        model = read_json(card)
        names = ("pooling", "skip_bos", "max_length", "precision", "layer")
        pooled = {**{name: how[name] for name in names}, "digests": model["digests"]}
        pooled |= {name: model[name] for name in ("revision", "source")}
    with located(listed):
        weights = fit_stack(pool, components, settings["settings"], settings["seed"])
    # What is read of a row, where nothing else is known.
    read = {"text": rows.get("text") or "text", "part": rows.get("part") or "whole"}
    origin = provenance(settings, examples=examples, embeddings=embeddings)
    scorer = {"selector": place["selector"], **read, "vectors": pooled}
    save_scorer(out, weights, {"scorer": scorer, "provenance": origin})


def save_scorer(out: Path, weights: Weights, metadata: Mapping[str, Any]) -> None:
    """Write weights beside the metadata of a scorer."""
    tensors = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    with atomic(out) as draft:
        save_file(tensors, draft, metadata=header(metadata))
