"""A pool from its tables, and the table of its scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.labels import group_codes
from mamushi.errors import UserError, other_examples
from mamushi.io import schemas
from mamushi.io.domains import FORGET, RETAIN
from mamushi.io.tables import large_matrix, ranked_columns, read_groups, read_metadata, read_table
from mamushi.registry import additions, plugin
from mamushi.selection.arrays import Rows
from mamushi.selection.pool import Pool, Scored


def read_pool(
    embeddings: str | Path,
    examples: str | Path,
    base: str | Path | None = None,
    *,
    texts: bool = False,
) -> Pool:
    """Read the tables ``embeddings`` and ``examples``, and what else is asked for.

    Raises ``UserError`` when they do not hold the same examples in one order, and when an embedding
    is not finite (its id is named).
    """
    table = read_table(embeddings, schemas.EMBEDDINGS, ["id", "domain"])
    further = ["log_density_ratio", "group", *(["text"] if texts else [])]
    listed = ranked_columns(Path(examples), *further)
    if not all(table[name].combine_chunks().equals(listed[name]) for name in ("id", "domain")):
        raise other_examples(embeddings, examples)
    ids, of_base = table["id"].to_numpy(), None
    if base is not None:
        scores = read_table(base, schemas.SCORES, ["id", "score", "fold"])
        if not scores["id"].equals(table["id"]):
            raise other_examples(base, embeddings)
        of_base = scored_of(scores)
    ratio = listed["log_density_ratio"].to_numpy(zero_copy_only=False)
    pool = Pool(
        ids=ids,
        forget=np.asarray(pc.equal(table["domain"], FORGET)),
        embeddings=read_matrix(embeddings, ids),
        truth=None if np.isnan(ratio).all() else ratio,
        base=of_base,
        texts=listed["text"].to_numpy(zero_copy_only=False) if texts else None,
        groups=group_codes(listed["group"]),
    )

    def column(name: str) -> NDArray[Any]:
        return np.array(ranked_columns(Path(examples), name)[name].to_pylist(), dtype=object)

    metadata = read_metadata(examples)
    for step in additions("pool_step"):
        pool = step(pool, metadata, column)
    return pool


def read_matrix(path: str | Path, ids: NDArray[np.object_]) -> NDArray[np.float16]:
    """Read the (n, d) vectors, a row group at a time; large ones into a file without a name beside
    the table. Raises ``UserError`` for one that is not finite."""
    matrix, start = np.empty((0, 0), np.float16), 0
    for group in read_groups(path, schemas.EMBEDDINGS, ["embedding"]):
        vectors = group["embedding"].combine_chunks().flatten().to_numpy()
        vectors = vectors.reshape(-1, group.schema.field("embedding").type.list_size)
        if not len(matrix):
            matrix = large_matrix((len(ids), vectors.shape[1]), Path(path).parent)
        odd = ~np.isfinite(vectors).all(axis=1)
        if odd.any():
            problem = f"the embedding of {ids[start + odd.argmax()]!r} holds NaN or infinity"
            raise UserError(problem, where=path)
        matrix[start : start + len(vectors)] = vectors
        start += len(vectors)
    matrix.flags.writeable = False
    return matrix


def score_pool(kind: str, pool: Pool, settings: Mapping[str, Any], seed: int) -> Scored:
    """Score a pool by a selector, and pass the scores through the pool's steps."""
    selector = plugin("selector", kind)
    scored: Scored = selector.code.score(pool, settings, seed)
    for step in pool.score_steps:
        scored = step(scored, pool, selector.by_chance)
    return scored


def scores_table(pool: Pool, scored: Scored) -> pa.Table:
    """Return the table ``scores``. Raises ``ValueError`` as ``rank_forget``."""
    order, n = rank_forget(pool, scored), len(pool.ids)
    ranks = np.zeros(n, dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    columns = {
        "id": pa.array(pool.ids, pa.string()),
        "domain": pc.if_else(pa.array(pool.forget), FORGET, RETAIN),
        "score": pa.array(scored.scores, mask=np.isnan(scored.scores)),
        "rank": pa.array(ranks, mask=~pool.forget),
        "fold": pa.nulls(n) if scored.fold is None else scored.fold,
    }
    return pa.table(columns).select(schemas.SCORES.schema.names).cast(schemas.SCORES.schema)


def scored_of(table: pa.Table) -> Scored:
    """Return the columns ``score`` and ``fold`` of a table."""
    fold = None if table["fold"].null_count else table["fold"].to_numpy().astype(np.int16)
    return Scored(np.asarray(table["score"].to_numpy(), dtype=np.float64), fold=fold)


def rank_forget(pool: Pool, scored: Scored) -> Rows:
    """Return the positions of the n1 forget examples, highest score first, ties by id. Raises
    ``ValueError`` when a forget example has no finite score: a mistake of the selector."""
    by_id = pool.forget_by_id()
    scores = scored.scores[by_id]
    if not np.isfinite(scores).all():
        raise ValueError(f"no finite score for {pool.ids[by_id[~np.isfinite(scores)][0]]!r}")
    if scored.order is None:
        return by_id[np.argsort(-scores, kind="stable")]
    if not np.array_equal(np.sort(scored.order), np.sort(by_id)):
        raise ValueError("the order is no permutation of the forget examples")
    return scored.order
