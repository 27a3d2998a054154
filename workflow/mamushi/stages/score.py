"""Rank the forget set by one selector.

Reads the embeddings of the inference section and writes the scores: one full ranking, from which
the removals at every budget are taken. The file's metadata say what it was made from, how well the
score separates the domains (AUC) and, for synthetic data, how well it follows the truth (Spearman).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("examples", "embeddings", "base")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=Path, required=True, help="the examples table")
    parser.add_argument("--embeddings", type=Path, required=True, help="their embeddings")
    parser.add_argument(
        "--base", nargs="?", type=Path, help="scores of the selector that this derives from"
    )
    parser.add_argument("--out", type=Path, required=True, help="the scores table to write")
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help='{"selector": name, "kind": plug-in, "settings": {...}, "seed": integer}',
    )


def run(args: argparse.Namespace) -> None:
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import FORGET, RETAIN, read_metadata, write_table
    from mamushi.errors import UserError
    from mamushi.registry import load, plugin
    from mamushi.selection.metrics import quality
    from mamushi.selection.pool import rank, read_pool

    chosen = args.settings
    found = plugin("selector", chosen["kind"])
    derives = found.literals.get("DERIVES")
    if (derives is None) != (args.base is None):
        raise UserError(
            f"selector {chosen['kind']!r} "
            + ("derives from no other" if derives is None else "derives from another"),
            where="--base",
            do="leave it out" if derives is None else f"give the scores of its setting {derives!r}",
        )
    pool = read_pool(args.embeddings, args.examples, args.base)
    scored = load("selector", chosen["kind"]).score(pool, chosen["settings"], chosen["seed"])
    order = rank(pool, scored)
    ranks = np.zeros(len(pool.ids), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    inputs = {"examples": args.examples, "embeddings": args.embeddings}
    if args.base is not None:
        inputs["base"] = args.base
    n = len(pool.ids)
    fold = np.zeros(n, np.int16) if scored.fold is None else scored.fold
    write_table(
        args.out,
        "scores",
        {
            "id": pa.array(pool.ids, pa.string()),
            "domain": pa.array(np.where(pool.forget, FORGET, RETAIN).tolist()),
            "score": pa.array(scored.scores, mask=np.isnan(scored.scores)),
            "rank": pa.array(ranks, mask=~pool.forget),
            "fold": pa.array(fold, mask=np.full(n, scored.fold is None)),
        },
        metadata={
            "provenance": provenance(chosen, **inputs),
            # Carried along, so that a removal list names its model without opening the embeddings.
            "embedded": read_metadata(args.embeddings),
            "details": quality(pool, scored),
        },
    )
