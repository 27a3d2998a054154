"""Collect the first and the last texts of rankings in the table qualitative_ranking.

The settings name the runs: in the workflow the first seed of each dataset and model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out_folder",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage. Its inputs are a few files per run, found by path."""
    parser.add_argument(
        "--root", type=Path, default=Path("results"), help="results folder (default: %(default)s)"
    )
    parser.add_argument("--out-folder", required=True, type=Path, help="where to write the table")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='{"runs": [{"dataset": .., "model": .., "seed": ..}, ...], "selector": name}',
    )


def run(args: argparse.Namespace) -> None:
    """Write ``qualitative_ranking`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    import pyarrow as pa

    from mamushi.artifacts import paths
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import SCHEMAS, write_csv, write_table
    from mamushi.evidence.ranking import ends, excerpt, read_ranking, texts_of

    name, selector = "qualitative_ranking", args.settings["selector"]
    rows = []
    inputs: dict[str, Path] = {}
    for one in args.settings["runs"]:
        this = {key: one[key] for key in ("dataset", "model", "seed")}
        scores = paths.under(args.root, paths.SCORES, **this, selector=selector)
        found = ends(read_ranking(scores))
        examples = paths.under(args.root, paths.EXAMPLES, dataset=this["dataset"])
        run = "/".join((this["dataset"], this["model"], f"seed{this['seed']}"))
        inputs |= {f"scores/{run}": scores, f"examples/{this['dataset']}": examples}
        texts = texts_of(examples, [row["id"] for row in found])
        rows += [
            {**this, "selector": selector, **row, "text": excerpt(text)}
            for row, text in zip(found, texts, strict=True)
        ]
    table = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
    metadata = provenance(args.settings, **inputs)
    write_table(args.out_folder / f"{name}.parquet", name, table, metadata=metadata)
    write_csv(args.out_folder / f"{name}.csv", table)
