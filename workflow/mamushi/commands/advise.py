"""Recommend how much to remove, before any retraining: the budget of each selector for one target.

Reads the frontiers of all seeds that a results folder has, and prints a table. Give one target:
the share of the full removal's effect to reach, the harm that the retain domain may keep, or the
share of the distance to the gold standard (SAD) to close.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
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
    print(report(advice(rows, sad, [(target, getattr(args, target))]), rows, args.root))


LIMIT = (
    "The share is that of a learner that becomes the mixture it is trained on. A model that is "
    "tuned on few texts may need another one, of the span; two or three retrainings there tell."
)


def report(
    advised: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]], root: Path
) -> str:
    """Return what is printed, a block per dataset and model, best selector first."""
    blocks = []
    for pair in dict.fromkeys((row["dataset"], row["model"]) for row in advised):
        ours = [row for row in advised if (row["dataset"], row["model"]) == pair]
        ours.sort(key=lambda row: (row["budget"] is None, row["budget"] or 0.0))
        theirs = [row for row in frontier if (row["dataset"], row["model"]) == pair]
        seeds, whole = {row["seed"] for row in theirs}, max(row["removed"] for row in theirs)
        first = (
            f"{pair[0]}, {pair[1]}: {_asked(ours[0])} "
            f"({len(seeds)} seed{'s' * (len(seeds) > 1)}, {whole:,} forget texts)"
        )
        needed = [row for row in ours if row["budget"]]
        blocks.append("\n".join([first, *_table(needed, whole, root), *_notes(ours, theirs)]))
    return "\n\n".join(blocks)


def _asked(row: Mapping[str, Any]) -> str:
    if row["target"] == "preservation":
        return f"harm to the retain domain of at most {row['value']:g} nats per text"
    what = "the full removal" if row["target"] == "removal" else "the distance to the gold standard"
    return f"{100 * row['value']:g}% of {what}"


def _table(rows: Sequence[Mapping[str, Any]], whole: int, root: Path) -> list[str]:
    """Return a line for each selector that has a budget, and one above them that says what is
    what. A column in which nothing is known is left out."""
    head = ["selector", "remove", "share", "95% interval", "retraining may need", "measured"]
    cells = [_cells(row, whole, root) for row in rows]
    lines = [[*head, "list"], *cells] if rows else []
    told = [column for column in zip(*lines, strict=True) if {*column[1:]} != {UNKNOWN}]
    widths = [max(map(len, column)) for column in told]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*told, strict=True)
    ]


UNKNOWN = "not known"


def _cells(row: Mapping[str, Any], whole: int, root: Path) -> list[str]:
    from mamushi.artifacts import paths
    from mamushi.selection.removals import share_of

    # Rounded up: with fewer the target would be missed.
    texts = min(math.ceil(row["budget"] * whole - 1e-9), whole - 1)
    beta = share_of(texts, whole)
    spans = [
        f"{row[f'{of}_low']:.0%} to {row[f'{of}_high']:.0%}" if row[f"{of}_low"] is not None else ""
        for of in ("budget", "retraining")
    ]
    shown = [row["selector"], f"{texts:,} texts", f"{100 * float(beta):g}%", *spans]
    shown.append("" if row["measured"] is None else f"{row['measured']:.0%}")
    cell = {"seed": "*", **{name: row[name] for name in ("dataset", "model", "selector")}}
    there = sorted(root.glob(str(paths.under("", paths.REMOVAL, **cell, beta=beta))))
    command = f"mamushi list --budget {beta} --selector {row['selector']}"
    return [*(each or UNKNOWN for each in shown), " ".join(map(str, there)) or command]


def _notes(rows: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is said of selectors without a budget, or that need none, and of the span."""
    why: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"]:
            why.setdefault(f"no budget for {{}}: {row['reason']}", []).append(row["selector"])
        elif row["budget"] == 0:
            harm = max(each["preservation"] for each in frontier if each["beta"] == 0)
            said = f"nothing has to go for {{}}: with all texts kept the harm is {harm:.3g} nats"
            why.setdefault(said, []).append(row["selector"])
    notes = [said.format(", ".join(names)) for said, names in why.items()]
    spanned = any(row["budget"] and row["retraining_low"] is not None for row in rows)
    return [*notes, LIMIT] if spanned else notes
