"""Join what the runs found before any retraining in tables, and add the advice that follows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mamushi.cli import settings

WRITES = ("out_folder",)
READS = None  # also what the settings name


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage. Its inputs are a few files per run, found by path."""
    parser.add_argument(
        "--root", type=Path, default=Path("results"), help="results folder (default: %(default)s)"
    )
    parser.add_argument("--out-folder", required=True, type=Path, help="where to write the tables")
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help='{"runs": [{"dataset", "model", "seed"}, ...], "runtime_runs": [...], "selector": '
        'whose scores estimate the log-density ratio, "sad": whether tables/sad.parquet is there, '
        '"targets": [{"target", "value"}, ...], "theory": {"worlds", "seed"}}',
    )


def run(args: argparse.Namespace) -> None:
    """Write ``frontier, diagnostics, geometry, runtime, advice, paper, theory``: Parquet and CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    import pyarrow as pa

    from mamushi.artifacts import paths
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import SCHEMAS, read_table, write_csv, write_table
    from mamushi.evidence.advice import advice, ordering, read_frontier
    from mamushi.evidence.quoted import beside
    from mamushi.evidence.tables import FILES, frontier_errors, joined, theory_rows
    from mamushi.evidence.worlds import looseness

    chosen = args.settings
    tables = {
        name: joined(name, chosen["runs"], args.root)
        for name in ("frontier", "diagnostics", "geometry")
    }
    tables["runtime"] = joined("runtime", chosen["runtime_runs"], args.root)
    curves = [
        row
        for run in chosen["runs"]
        for row in read_frontier(paths.under(args.root, paths.FRONTIER, **run))
    ]
    inputs = {
        f"{name}/{run['dataset']}/{run['model']}/seed{run['seed']}": paths.under(
            args.root, pattern, **run
        )
        for name, pattern in FILES.items()
        for run in chosen["runtime_runs" if name == "runtime" else "runs"]
    }
    sad = None
    if chosen["sad"]:
        inputs["sad"] = paths.under(args.root, paths.TABLE, table="sad")
        sad = read_table(inputs["sad"], "sad").to_pylist()
    targets = [(one["target"], one["value"]) for one in chosen["targets"]]
    tables["advice"] = pa.table(advice(curves, sad, targets), schema=SCHEMAS["advice"])
    rows = {name: tables[name].to_pylist() for name in ("diagnostics", "geometry")}
    tables["paper"] = pa.table(beside(**rows, selector=chosen["selector"]), schema=SCHEMAS["paper"])
    worlds = theory_rows(looseness(**chosen["theory"]))
    tables["theory"] = pa.Table.from_pylist(worlds, schema=SCHEMAS["theory"])
    made_from = provenance(chosen, **inputs)
    errors = frontier_errors(tables["frontier"].to_pylist())
    order = {"/".join(pair): rho for pair, rho in ordering(tables["advice"].to_pylist()).items()}
    about: dict[str, dict[str, Any]] = {
        "frontier": {"mean_absolute_error": errors},
        "advice": {"spearman_of_areas": order},
    }
    for name, table in tables.items():
        metadata = {**made_from, **about.get(name, {})}
        write_table(args.out_folder / f"{name}.parquet", name, table, metadata=metadata)
        write_csv(args.out_folder / f"{name}.csv", table)
    for key, error in errors.items():
        print(
            f"{key}: the estimated frontier is off by {error['removal']:.4f} (removal) and "
            f"{error['preservation']:.4f} (preservation) nats on average"
        )
    for pair, rho in order.items():
        if rho is not None:
            print(f"{pair}: predicted and measured areas agree with Spearman {rho:.2f}")
