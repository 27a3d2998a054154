"""Recommend how much to remove, before any retraining: the budget of each selector for one target.

Reads what is foreseen in a results folder, of all its seeds, and prints a table. Give one target:
the share of the full removal's effect to reach, or the harm that the retain domain may keep.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io import paths

GROUP = "decide"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    root = "results folder (default: %(default)s)"
    parser.add_argument("--root", type=Path, default=Path("results"), help=root)
    parser.add_argument("--dataset", help="only this dataset")
    parser.add_argument("--model", help="only this model")
    parser.add_argument("--selector", nargs="+", metavar="NAME", help="only these selectors")
    target = parser.add_mutually_exclusive_group(required=True)
    for option, metavar, condition in (
        ("removal", "SHARE", "reaches this share of what removing everything does"),
        ("preservation", "NATS", "has at most this KL(retain || mixture), in nats per text"),
    ):
        help_ = f"smallest budget that {condition}"
        target.add_argument(f"--{option}", type=float, metavar=metavar, help=help_)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` when there is no frontier, or none of what was asked for."""
    from mamushi.evidence.advice import TARGETS, advice, check_target, read_results

    target = next(name for name in TARGETS if getattr(args, name) is not None)
    check_target(target, getattr(args, target))
    results = read_results(args.root, args.dataset, args.model)
    selectors = sorted({row["selector"] for every in results for row in every})
    if unknown := sorted(set(args.selector or ()) - set(selectors)):
        problem, do = (
            f"no selector {unknown[0]!r} in the frontiers",
            f"there are {', '.join(selectors)}",
        )
        raise UserError(problem, where="--selector", do=do)
    rows, foreseen = (
        [row for row in every if not args.selector or row["selector"] in args.selector]
        for every in results
    )
    targets = [(target, getattr(args, target))]
    advised = advice(rows, targets, foreseen)
    if args.json:
        _as_json.put(advised)
    else:
        print(advice_text(advised, [*rows, *foreseen], args.root))


LIMIT = (
    "The share is that of a learner that becomes the mixture it is trained on. A model that is "
    "tuned on few texts may need another one, of the span; two or three retrainings there tell."
)
_PREDICTED = (
    "Predicted by what goes of the words; retrained models needed a budget in the interval."
)


def advice_text(
    advised: Sequence[Mapping[str, Any]],
    frontier: Sequence[Mapping[str, Any]],
    root: Path,
) -> str:
    """Return what is printed, a block per dataset and model, best selector first."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget

    blocks = []
    for pair in dict.fromkeys((row["dataset"], row["model"]) for row in advised):
        ours = [row for row in advised if (row["dataset"], row["model"]) == pair]
        ours.sort(key=lambda row: (first_budget(row) is None, first_budget(row) or 0.0))
        theirs = [row for row in frontier if (row["dataset"], row["model"]) == pair]
        wholes = {
            row["selector"]: max(
                other["removed"] for other in theirs if other["selector"] == row["selector"]
            )
            for row in ours
        }
        texts = [wholes[row["selector"]] for row in ours if row["reason"] != OF_TOKENS]
        seeds = {row["seed"] for row in theirs}
        of = f"{len(seeds)} seed{'s' * (len(seeds) > 1)}, {[*texts, 0][0]:,} forget texts"
        cells = [
            _cells(row, wholes[row["selector"]], root, min(seeds))
            for row in ours
            if first_budget(row)
        ]
        # A column in which nothing is known is left out.
        columns = [name for name in (cells or [{}])[0] if {row[name] for row in cells} != {None}]
        table = [columns, *([row[name] or "not known" for name in columns] for row in cells)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(map(str.ljust, line, widths)).rstrip() for line in (table if cells else [])
        ]
        first = f"{pair[0]}, {pair[1]}: {target_text(ours[0])} ({of})"
        blocks.append("\n".join([first, *lines, *_notes(ours, theirs)]))
    return "\n\n".join(blocks)


def target_text(row: Mapping[str, Any]) -> str:
    """Return the target of a row in words."""
    if row["target"] == "preservation":
        return f"harm to the retain domain of at most {row['value']:g} nats per text"
    return f"{100 * row['value']:g}% of the full removal"


def _cells(row: Mapping[str, Any], whole: int, root: Path, seed: int) -> dict[str, str | None]:
    """Return what is printed of a selector that has a budget, None where nothing is known."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget, units_at
    from mamushi.selection.removals import share_of

    budget, tokens = first_budget(row) or 0.0, row["reason"] == OF_TOKENS
    units = units_at(budget, whole)
    beta = paths.beta(round(budget, 2)) if tokens else share_of(units, whole)

    def span(of: str) -> str | None:
        low, high = row[f"{of}_low"], row[f"{of}_high"]
        return None if low is None else f"{low:.0%} to {high:.0%}"

    is_measured = row["retraining"] is not None
    cell = {"seed": "*", **{name: row[name] for name in ("dataset", "model", "selector")}}
    pattern = paths.SPANS if tokens else paths.REMOVAL
    lists = sorted(root.glob(str(paths.under("", pattern, **cell, beta=beta))))
    command = f"mamushi list --budget {beta} --selector {row['selector']}"
    if tokens:
        command = f"mamushi run {pattern.format(**{**cell, 'seed': seed}, beta=beta)}"
    return {
        "selector": row["selector"],
        "remove": f"{units:,} {'tokens' if tokens else 'texts'}",
        "share": f"{100 * float(beta):g}%",
        "95% interval": span("retraining" if is_measured else "budget"),
        "retraining may need": None if is_measured else span("retraining"),
        "list": " ".join(map(str, lists)) or command,
    }


def _notes(rows: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is said of selectors without a budget, or that need none, and of the span."""
    why: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"] and row["retraining"] is None:
            why.setdefault(f"no budget for {{}}: {row['reason']}", []).append(row["selector"])
        elif row["budget"] == 0:
            harm = max(point.get("preservation", 0) for point in frontier if point["beta"] == 0)
            note = f"nothing has to go for {{}}: with all texts kept the harm is {harm:.3g} nats"
            why.setdefault(note, []).append(row["selector"])
    notes = [note.format(", ".join(names)) for note, names in why.items()]
    are_measured = [
        row["retraining"] is not None for row in rows if row["retraining_low"] is not None
    ]
    if any(are_measured):
        notes.append(_PREDICTED)
    return notes if all(are_measured) else [*notes, LIMIT]
