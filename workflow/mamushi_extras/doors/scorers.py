"""Files that score texts without the run that fitted them: a stack that ranked a list, fitted to
all texts.

A scorer is the sum of an ``intercept`` and a weight for every term of a text, times its tf-idf:
words in the place of vectors, and n-grams of words and of characters (Salton and Buckley, 1988); or
of vectors of a model and these n-grams. A text is scored by itself, so that its score does not
depend on which others are scored beside it.

The file has ``intercept`` (1,), and of each kind of terms the ``KIND.columns`` (d,) that they are
among all hashed ones, how rare they are, ``KIND.rarity`` (d,), and ``KIND.weights`` (d,). Vectors
of a model have ``vectors`` (width,), their weights, and the metadata say how they are made.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError, located
from mamushi.io import digests, paths
from mamushi.io.digests import provenance
from mamushi.io.files import atomic, header, read_json, reading, trained_metadata, write_json
from mamushi.io.tables import read_metadata
from mamushi.lm.tokens import CHATS
from mamushi.selection import linear
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.pool import Pool
from mamushi.selection.scores import read_pool
from mamushi_curate.removal import read_removal
from mamushi_curate.vectors.word_vectors import WordComponents, count_words, fit_components
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words import estimators

KINDS = ("components", "words", "characters")
"""Of terms, as ``count_words`` and ``count_ngrams`` count them."""
VECTORS = "vectors"
BATCH_TOKENS = 16384  # Of a forward pass.
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
    forget, counts = task.forget[task.train], estimators.count_ngrams(pool.texts)
    scores = estimators.inner_scores(
        task, estimators.stacked_logits(task, counts, settings), settings["folds"]
    )
    # What the sum of members is where all are 0, and where one of them is 1.
    ends = np.vstack([np.zeros(estimators.MEMBERS), np.eye(estimators.MEMBERS)])
    at_zero, *at_one = estimators.combine(scores, forget, ends)
    factors = np.array(at_one) - at_zero

    model, mean, scale = estimators.fit_standardised(task, settings["prior"])
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
    ``UserError`` as ``read_removal`` and ``of_run``, for another selector, and for vectors that are
    of another run or that nothing here makes of other texts."""
    removal = read_removal(listed)
    examples, place = removal.of_run("examples"), removal.run or {}
    patterns = (paths.SCORES, paths.EMBEDDINGS, paths.MODEL_CARD)
    scores, embeddings, card = (paths.under(pattern=p, **place) for p in patterns)
    ranked, rows = read_metadata(scores), removal.source or {}
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


def open_embedder(
    name: str, pooled: Mapping[str, Any], scorer: Path
) -> Callable[[Sequence[str]], Doubles]:
    """Return a function that maps texts to vectors (n, width), NaN for a text without tokens. The
    model is a folder or an id on the hub; its states are pooled as ``pooled``, of the file
    ``scorer``, says. Raises ``UserError`` for another model than the scorer was fitted with."""
    from mamushi.lm import loading
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import TokenSet, encode, frame_tokens, offsets_of
    from mamushi.stages._models import open_arm

    is_here = (source := Path(name).expanduser()).exists()
    place, revision = (str(source.absolute()), None) if is_here else (name, pooled["revision"])
    described = loading.inspect("scorer", place, revision=revision, contaminated=True)
    for file, digest in pooled["digests"].items():
        if described["digests"].get(file) != digest:
            do = f"give the model by which it was fitted; it was {pooled['source']}"
            raise UserError(f"is not the model of {scorer}: {file} differs", where=name, do=do)
    with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
        write_json(card := Path(folder) / "card.json", described)
        model, accelerator = open_arm(card, None, None, pooled["precision"])
        tokenizer = loading.open_tokenizer(card)
    most = min(pooled["max_length"], described["max_positions"] or pooled["max_length"])
    how = {name: pooled[name] for name in ("pooling", "layer")}
    how |= {"skip_first": pooled["skip_bos"] and bool(frame_tokens(tokenizer)[0])}
    how |= {"batch_tokens": BATCH_TOKENS, "accelerator": accelerator}

    def vectors(texts: Sequence[str]) -> Doubles:
        ids = [*encode(tokenizer, texts, most)]
        lengths = np.array([*map(len, ids)], np.int64)
        filled = lengths > 0
        numbers = np.flatnonzero(filled).astype(str).astype(object)
        tokens = np.array([token for row in ids for token in row], np.int32)
        texts_read = TokenSet(numbers, numbers, tokens, offsets_of(lengths[filled]))
        embedded = embed(model, texts_read, **how)
        every = np.full((len(texts), embedded.shape[1]), np.nan)
        every[filled] = embedded
        return every

    return vectors


@dataclass(frozen=True)
class Scorer:
    """What ranked a list: of each kind of terms the ``columns`` (d,) among all hashed ones, their
    weights (d,), and what weighs their counts; weights of ``vectors`` (width,) that ``embed``
    makes, if any. ``text`` and ``part`` say what was read of a row where it was fitted."""

    text: str
    part: str
    intercept: float
    terms: Mapping[str, tuple[NDArray[np.int32], Doubles, TfidfTransformer]]
    vectors: Doubles | None
    embed: Callable[[Sequence[str]], Doubles] | None

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats; NaN of one without
        a term or a token that is known."""
        total, says = np.full(len(texts), self.intercept), np.full(len(texts), bool(self.embed))
        if self.embed is not None and self.vectors is not None:
            total += self.embed(texts) @ self.vectors
        counts = dict(
            zip(KINDS, (count_words(texts), *estimators.count_ngrams(texts)), strict=True)
        )
        for kind, (columns, weights, rarity) in self.terms.items():
            x = rarity.transform(counts[kind][:, columns])
            total += x @ weights
            says |= x.getnnz(axis=1) > 0
        return np.where(says, total, np.nan)


def read_scorer(path: Path, model: str | None = None) -> Scorer:
    """Read a scorer from a file. Raises ``UserError`` for a file that is missing, damaged or no
    scorer, for one that needs a ``model`` if none is given, and as ``open_embedder``."""
    with reading(path, do="give what mamushi export --to scorer wrote"):
        scorer, tensors = trained_metadata(path)["scorer"], load_file(path)
        terms = {}
        for kind in (kind for kind in KINDS if f"{kind}.columns" in tensors):
            columns, weights = tensors[f"{kind}.columns"], tensors[f"{kind}.weights"]
            terms[kind] = (columns, weights, rarity_of(tensors[f"{kind}.rarity"]))
        how = (scorer["text"], scorer["part"], float(tensors["intercept"][0]))
        pooled = scorer["vectors"]
    if pooled is not None and model is None:
        do = f"name it with --model; it was {pooled['source']}"
        raise UserError("scores vectors of a model", where=path, do=do)
    embed = pooled and open_embedder(str(model), pooled, path)
    return Scorer(*how, terms, tensors.get(VECTORS), embed)
