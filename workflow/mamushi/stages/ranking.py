"""Make the page to browse a run's ranking of the forget set: one HTML file that opens offline.

It shows every text, with profanity masked, by the rank of any selector: search, sort, what a
budget removes, and where two selectors differ.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("examples", "scores")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--examples", required=True, type=Path, help="the examples table")
    parser.add_argument("--scores", required=True, nargs="+", type=Path, help="scores tables")
    parser.add_argument(
        "--selectors", required=True, nargs="+", help="their selectors, in the same order"
    )
    parser.add_argument("--out", required=True, type=Path, help="the HTML file to write")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='{"dataset": .., "model": .., "seed": .., "budgets": [..]}',
    )


def run(args: argparse.Namespace) -> None:
    """Write the page. Raises ``UserError`` for a missing or damaged file, unless every file has one
    selector of its own, and when they rank other examples."""
    from mamushi.artifacts.files import atomic
    from mamushi.artifacts.provenance import provenance
    from mamushi.errors import UserError
    from mamushi.evidence.ranking import page, page_data, read_ranking, texts_of

    names, files = args.selectors, args.scores
    if len(names) != len(files) or len(set(names)) < len(names):
        raise UserError(
            f"{len(files)} files of scores and the selectors {', '.join(names)}",
            where="--selectors",
            do="name each selector once, in the order of --scores",
        )
    chosen = args.settings
    rankings = {name: read_ranking(path) for name, path in zip(names, files, strict=True)}
    ids = rankings[names[0]].ids
    texts = dict(zip(ids, texts_of(args.examples, ids), strict=True))
    inputs = {f"scores/{name}": path for name, path in zip(names, files, strict=True)}
    about = {"provenance": provenance(chosen, examples=args.examples, **inputs)}
    data = page_data(rankings, texts, chosen["budgets"], about)
    title = f"Ranking of {chosen['dataset']} by {chosen['model']}, seed {chosen['seed']}"
    with atomic(args.out) as part:
        part.write_text(page(title, data), encoding="utf-8", newline="\n")
