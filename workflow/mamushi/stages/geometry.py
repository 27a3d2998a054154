"""Measure the anisotropy of a run's embeddings, and how the subspaces of the domains differ.

Reads the embeddings of the inference section and writes a row per number of leading components. The
file's metadata have the sizes and the width of the embeddings, and the numbers that the paper
quotes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("embeddings",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--embeddings", required=True, type=Path, help="the embeddings table")
    parser.add_argument("--out", required=True, type=Path, help="the geometry table to write")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='{"dataset": .., "model": .., "seed": .., "components": how many at most}',
    )


def run(args: argparse.Namespace) -> None:
    """Write ``geometry``. Raises ``UserError`` for a missing or damaged file, a domain without
    examples, and embeddings that are not finite or all the same."""
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import write_table
    from mamushi.errors import UserError
    from mamushi.evidence.geometry import geometry, read_embeddings, summary

    chosen = args.settings
    pool = read_embeddings(args.embeddings)
    try:
        columns = geometry(pool, chosen["components"], chosen["seed"])
    except UserError as error:
        raise UserError(error.what, where=args.embeddings, do=error.do) from None
    size = len(columns["k"])
    this = {key: [chosen[key]] * size for key in ("dataset", "model", "seed")}
    write_table(
        args.out,
        "geometry",
        {**this, **columns},
        metadata={
            "provenance": provenance(chosen, embeddings=args.embeddings),
            "details": {
                "n_forget": int(pool.forget.sum()),
                "n_retain": int((~pool.forget).sum()),
                "width": pool.width,
                **summary(columns),
            },
        },
    )
