"""Estimate the removal-preservation frontier of a run's selectors, before any retraining.

For every selector and budget, 0 and 1 included: KL(p1 || p_-S) and KL(p2 || p_-S) from the scores
that estimate the log-density ratio, with bands of a bootstrap over examples, and for a dataset that
knows its densities the exact values beside them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.cli import settings

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from mamushi.evidence.bootstrap import Truth

WRITES = ("out",)
READS = ("examples", "scores", "ratio")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--examples", type=Path, required=True, help="the examples table")
    parser.add_argument("--scores", type=Path, required=True, nargs="+", help="scores to rank by")
    parser.add_argument(
        "--selectors", required=True, nargs="+", help="the selector of each, in the same order"
    )
    parser.add_argument(
        "--ratio", type=Path, required=True, help="scores that estimate the log-density ratio"
    )
    parser.add_argument("--out", type=Path, required=True, help="the frontier table to write")
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help='{"dataset", "model", "seed", "budgets": [...], "by_chance": {selector: true or '
        'false}, "resamples"}',
    )


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for scores of other examples, or a ratio that lacks a score."""
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import SCHEMAS, read_metadata, read_table, write_table
    from mamushi.errors import UserError
    from mamushi.evidence.bootstrap import bands, exact, rows
    from mamushi.evidence.manifest import frontier
    from mamushi.selection.removals import budget_of

    chosen = args.settings
    if len(args.scores) != len(args.selectors):
        raise UserError(
            f"{len(args.selectors)} selectors for {len(args.scores)} files of scores",
            where="--selectors",
            do="give one for each",
        )
    ratio = read_table(args.ratio, "scores")
    made = {args.ratio: _sources(read_metadata(args.ratio), args.ratio)}
    frontiers = {}
    for name, path in zip(args.selectors, args.scores, strict=True):
        made[path] = _sources(read_metadata(path), path)
        if made[path] != made[args.ratio]:
            raise UserError(
                f"was made from other examples or embeddings than {args.ratio}",
                where=path,
                do="delete both and score again",
            )
        scores = read_table(path, "scores")
        frontiers[name] = frontier(scores, ratio, bool(chosen["by_chance"].get(name, False)))
    budgets = sorted({0.0, 1.0, *map(float, chosen["budgets"])})
    counts = np.array([budget_of(beta, ratio) for beta in budgets])
    found = bands(frontiers, counts, chosen["resamples"], chosen["seed"])
    truth = _truth(read_table(args.examples, "examples"), ratio)
    run = {key: chosen[key] for key in ("dataset", "model", "seed")}
    table = []
    for name, one in frontiers.items():
        exactly = None if truth is None else exact(one.ranks, truth, counts)
        along = rows(found[name], exactly, one.forms(counts))
        table += [
            {**run, "selector": name, "beta": beta, "removed": int(k), **row}
            for beta, k, row in zip(budgets, counts, along, strict=True)
        ]
    inputs = {f"scores/{n}": p for n, p in zip(args.selectors, args.scores, strict=True)}
    write_table(
        args.out,
        "frontier",
        pa.Table.from_pylist(table, schema=SCHEMAS["frontier"]),
        metadata={
            "provenance": provenance(chosen, examples=args.examples, ratio=args.ratio, **inputs),
            # What the advisor reads: it has targets relative to the ends of a curve, whose bands
            # do not follow from those of the curve.
            "relative": {
                name: {
                    f"{what}{end}": _listed(getattr(one[what], part))
                    for what in ("gain", "decline")
                    for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                }
                for name, one in found.items()
            },
        },
    )


def _sources(stored: dict[str, Any], path: Path) -> dict[str, str]:
    from mamushi.errors import UserError

    try:
        inputs = stored["provenance"]["inputs"]
        return {name: inputs[name] for name in ("examples", "embeddings")}
    except KeyError:
        raise UserError(
            "does not say what it was made from", where=path, do="delete it and score again"
        ) from None


def _listed(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def _truth(examples: pa.Table, ratio: pa.Table) -> Truth | None:
    """The exact ratios, None for a dataset that does not know them for all that is ranked."""
    import numpy as np

    from mamushi.artifacts.tables import FORGET
    from mamushi.evidence.bootstrap import Truth

    known = np.asarray(examples["log_density_ratio"].to_numpy(), dtype=np.float64)
    by_id = dict(zip(examples["id"].to_pylist(), known, strict=True))
    ranked = np.array([by_id.get(name, np.nan) for name in ratio["id"].to_pylist()])
    if not np.isfinite(ranked).all():
        return None
    finite = np.isfinite(known)
    everywhere = np.array(examples["domain"].to_pylist())[finite] == FORGET
    forget = np.array(ratio["domain"].to_pylist()) == FORGET
    return Truth(known[finite], everywhere, ranked[forget], ranked[~forget])
