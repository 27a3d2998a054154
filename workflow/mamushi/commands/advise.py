"""Recommend how much to remove, before any retraining: the budget of each selector for one target.

Reads the frontiers of all seeds that a results folder has, and prints a table. Give one target:
the share of the full removal's effect to reach, the harm that the retain domain may keep, or the
share of the distance to the gold standard (SAD) to close.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GROUP = "decide"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    root = "results folder (default: %(default)s)"
    parser.add_argument("--root", type=Path, default=Path("results"), help=root)
    parser.add_argument("--dataset", help="only this dataset")
    parser.add_argument("--model", help="only this model")
    parser.add_argument("--selector", nargs="+", metavar="NAME", help="only these selectors")
    target = parser.add_mutually_exclusive_group(required=True)
    for option, metavar, about in (
        ("removal", "SHARE", "reaches this share of what removing everything does"),
        ("preservation", "NATS", "has at most this KL(retain || mixture), in nats per text"),
        ("sad", "SHARE", "closes this share of the distance to the gold standard"),
    ):
        help_ = f"smallest budget that {about}"
        target.add_argument(f"--{option}", type=float, metavar=metavar, help=help_)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` when there is no frontier, or none of what was asked for."""
    import glob

    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.tables import read_table
    from mamushi.errors import UserError
    from mamushi.evidence.advice import TARGETS, advice, read_frontier

    target = next(name for name in TARGETS if getattr(args, name) is not None)
    named = {"dataset": args.dataset, "model": args.model, "seed": None}
    pattern = {key: glob.escape(value) if value else "*" for key, value in named.items()}
    files = sorted(args.root.glob(str(paths.under("", paths.FRONTIER, **pattern))))
    if not files:
        shown = {key: value or "*" for key, value in named.items()}
        what = f"no {paths.under('', paths.FRONTIER, **shown)} in it"
        do = "make the frontiers first: mamushi run evidence"
        raise UserError(what, where=args.root, do=do)
    rows = [row for path in files for row in read_frontier(path)]
    known = sorted({row["selector"] for row in rows})
    if unknown := sorted(set(args.selector or ()) - set(known)):
        what, do = f"no selector {unknown[0]!r} in the frontiers", f"there are {', '.join(known)}"
        raise UserError(what, where="--selector", do=do)
    rows = [row for row in rows if not args.selector or row["selector"] in args.selector]
    measured = args.root / "tables" / "sad.parquet"
    sad = read_table(measured, schemas.SAD).to_pylist() if measured.is_file() else None
    print(report(advice(rows, sad, [(target, getattr(args, target))]), rows))


LIMIT = (
    "in the limit: of a learner that becomes the mixture it is trained on. A model that is tuned "
    "on few texts needs another budget of the span; two or three retrainings there tell which."
)


def report(advised: Sequence[dict[str, Any]], frontier: Sequence[dict[str, Any]]) -> str:
    """Return the table that is printed, a block per dataset and model, best selector first."""
    blocks = []
    for pair in dict.fromkeys((row["dataset"], row["model"]) for row in advised):
        ours = [row for row in advised if (row["dataset"], row["model"]) == pair]
        ours.sort(key=lambda row: (row["budget"] is None, row["budget"] or 0.0))
        theirs = [row for row in frontier if (row["dataset"], row["model"]) == pair]
        seeds, whole = {row["seed"] for row in theirs}, max(row["removed"] for row in theirs)
        head = ["selector", "retraining needs", "in the limit", "95% interval", "examples"]
        lines = [[*head, "measured"], *(_cells(row, whole) for row in ours)]
        if all(row["measured"] is None for row in ours):
            lines = [line[:-1] for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        first = (
            f"{pair[0]}, {pair[1]}: {_asked(ours[0])} "
            f"({len(seeds)} seed{'s' * (len(seeds) > 1)}, {whole} forget examples)"
        )
        body = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
        why: dict[str, list[str]] = {}
        for row in ours:
            if row["reason"]:
                why.setdefault(row["reason"], []).append(row["selector"])
        notes = [f"no budget for {', '.join(names)}: {reason}" for reason, names in why.items()]
        if any(row["retraining_low"] is not None for row in ours):
            notes.append(LIMIT)
        blocks.append("\n".join([first, *(line.rstrip() for line in body), *notes]))
    return "\n\n".join(blocks)


def _asked(row: dict[str, Any]) -> str:
    if row["target"] == "preservation":
        return f"preservation of at most {row['value']:g} nats"
    what = "the full removal" if row["target"] == "removal" else "the distance to the gold standard"
    return f"{100 * row['value']:g}% of {what}"


def _cells(row: dict[str, Any], whole: int) -> list[str]:
    measured = _share(row["measured"])
    if row["budget"] is None:
        return [row["selector"], "none", "", "", "", measured]
    # Rounded up: with fewer the target would be missed.
    examples = -int(-row["budget"] * whole // 1)
    spans = [
        "-" if row[f"{of}_low"] is None else f"{row[f'{of}_low']:.2f} to {row[f'{of}_high']:.2f}"
        for of in ("retraining", "budget")
    ]
    return [row["selector"], spans[0], _share(row["budget"]), spans[1], str(examples), measured]


def _share(budget: float | None) -> str:
    return "-" if budget is None else f"{budget:.2f}"
