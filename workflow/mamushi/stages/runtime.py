"""Time every selector on one run's embeddings, on the CPU: seconds and peak memory.

The embeddings are read once, before anything is timed. A selection is what is timed: from the
embeddings to the ranking of the forget set, with all fits. A selector that derives from another is
timed with that other, since it cannot be had without. One that needs the true density ratio is left
out where nobody knows it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("examples", "embeddings")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the stage."""
    parser.add_argument("--examples", type=Path, required=True, help="the examples table")
    parser.add_argument("--embeddings", type=Path, required=True, help="their embeddings")
    parser.add_argument("--out", type=Path, required=True, help="the runtime table to write")
    parser.add_argument(
        "--settings",
        type=settings,
        required=True,
        help='{"dataset", "model", "seed", "selectors": [{"selector", "kind", "settings"}, ...], '
        '"repeats", "threads"}, and perhaps "bases": selectors that others only derive from',
    )


def run(args: argparse.Namespace) -> None:
    """Write ``runtime``.

    Raises ``UserError`` for unusable embeddings, for a selector that derives from one that is not
    in the settings, and when there is none to time.
    """
    import os

    # Read when torch looks for a GPU for the first time: all selectors run where the paper's do.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

    import pyarrow as pa
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import SCHEMAS, write_table
    from mamushi.evidence.runtime import Selector, hardware, measure, row, selections, warm_up
    from mamushi.selection.pool import read_pool

    chosen = args.settings
    threads, repeats = int(chosen["threads"]), int(chosen["repeats"])
    pool = read_pool(args.embeddings, args.examples)
    named, bases = (
        {one["selector"]: Selector(one["kind"], one["settings"]) for one in chosen.get(key, ())}
        for key in ("selectors", "bases")
    )
    torch.set_num_threads(threads)
    calls, left_out = selections(pool, named, chosen["seed"], bases)
    # Imports what the selectors need, so that the limit below finds their thread pools.
    warm_up(pool, named, chosen["seed"], bases)
    with threadpool_limits(limits=threads):
        timings = measure(calls, repeats)
    this = {key: chosen[key] for key in ("dataset", "model", "seed")}
    sizes = {
        "n_forget": int(pool.forget.sum()),
        "n_retain": int((~pool.forget).sum()),
        "width": pool.width,
        "threads": threads,
        "repeats": repeats,
    }
    rows = [{**this, "selector": name, **sizes, **row(one)} for name, one in timings.items()]
    write_table(
        args.out,
        "runtime",
        pa.Table.from_pylist(rows, schema=SCHEMAS["runtime"]),
        metadata={
            "provenance": provenance(chosen, examples=args.examples, embeddings=args.embeddings),
            "hardware": hardware(),
            "left_out": left_out,
            "seconds": {
                name: {"wall": one.wall.tolist(), "cpu": one.cpu.tolist()}
                for name, one in timings.items()
            },
        },
    )
    for entry in rows:
        print(
            f"{entry['selector']}: {entry['wall_seconds']:.4f} s (± {entry['wall_spread']:.4f}), "
            f"CPU {entry['cpu_seconds']:.4f} s, {entry['peak_mib']:.0f} MiB"
        )
