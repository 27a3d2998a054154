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
from mamushi.io import paths

LIMIT = (
    "The share is that of a learner that becomes the mixture it is trained on. A model that is "
    "tuned on few texts may need another one; two or three retrainings there tell."
)
_PREDICTED = (
    "Predicted by what goes of the words; retrained models needed a budget in the interval."
)
_Row = Mapping[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    root = "results folder (default: %(default)s)"
    parser.add_argument("--root", type=Path, default=Path("results"), help=root)
    parser.add_argument("--dataset", help="only this dataset")
    parser.add_argument("--model", help="only this model")
    target = parser.add_mutually_exclusive_group(required=True)
    for option, metavar, condition in (
        ("removal", "SHARE", "reaches this share of what removing everything does"),
        ("preservation", "NATS", "has at most this KL(retain || mixture), in nats per text"),
    ):
        help_ = f"smallest budget that {condition}"
        target.add_argument(f"--{option}", type=float, metavar=metavar, help=help_)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` when there is no frontier of what was asked for."""
    from mamushi.evidence.advice import TARGETS, advice, read_results

    target = next(name for name in TARGETS if getattr(args, name) is not None)
    frontier, foreseen = read_results(args.root, args.dataset, args.model)
    rows = advice(frontier, [(target, getattr(args, target))], foreseen)
    if args.json:
        _as_json.put(rows)
    else:
        print(advice_text(rows, [*frontier, *foreseen], args.root))


def advice_text(rows: Sequence[_Row], points: Sequence[_Row], root: Path) -> str:
    """Return what is printed, a block per dataset and model, best selector first; ``points`` are
    the rows of frontiers and predictions that the advice is made from."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget

    blocks = []
    for pair in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        of_pair = [row for row in rows if (row["dataset"], row["model"]) == pair]
        of_pair.sort(key=lambda row: (first_budget(row) is None, first_budget(row) or 0.0))
        theirs = [point for point in points if (point["dataset"], point["model"]) == pair]
        totals: dict[str, int] = {}
        for point in theirs:
            name = point["selector"]
            totals[name] = max(totals.get(name, 0), point["removed"])
        texts = [totals[row["selector"]] for row in of_pair if row["reason"] != OF_TOKENS]
        seeds = {point["seed"] for point in theirs}
        of = f"{len(seeds)} seed{'s' * (len(seeds) > 1)}, {[*texts, 0][0]:,} forget texts"
        lines = [f"{pair[0]}, {pair[1]}: {target_text(of_pair[0])} ({of})"]
        useful = [row for row in of_pair if first_budget(row)]
        cells = [_cells(row, totals[row["selector"]], root, min(seeds)) for row in useful]
        if cells:
            table = [[*cells[0]], *([*row.values()] for row in cells)]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        blocks.append("\n".join([*lines, *_notes(of_pair, theirs)]))
    return "\n\n".join(blocks)


def target_text(row: _Row) -> str:
    """Return the target of a row in words."""
    if row["target"] == "preservation":
        return f"harm to the retain domain of at most {row['value']:g} nats per text"
    return f"{100 * row['value']:g}% of the full removal"


def _cells(row: _Row, total: int, root: Path, seed: int) -> dict[str, str]:
    """Return what is printed of a selector that has a budget."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget, units_at
    from mamushi.selection.removals import share_of

    budget, is_of_tokens = first_budget(row) or 0.0, row["reason"] == OF_TOKENS
    units = units_at(budget, total)
    beta = paths.beta(round(budget, 2)) if is_of_tokens else share_of(units, total)
    of = "budget" if row["retraining"] is None else "retraining"
    cell = {"seed": "*", **{name: row[name] for name in ("dataset", "model", "selector")}}
    pattern = paths.SPANS if is_of_tokens else paths.REMOVAL
    lists = sorted(root.glob(str(paths.under("", pattern, **cell, beta=beta))))
    command = f"mamushi list --budget {beta} --selector {row['selector']}"
    if is_of_tokens:
        command = f"mamushi run {pattern.format(**{**cell, 'seed': seed}, beta=beta)}"
    return {
        "selector": row["selector"],
        "remove": f"{units:,} {'tokens' if is_of_tokens else 'texts'}",
        "share": f"{100 * float(beta):g}%",
        "95% interval": f"{row[f'{of}_low']:.0%} to {row[f'{of}_high']:.0%}",
        "list": " ".join(map(str, lists)) or command,
    }


def _notes(rows: Sequence[_Row], points: Sequence[_Row]) -> list[str]:
    """Return what is said of selectors without a budget, or that need none, and of how sure the
    others are."""
    why: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"] and row["retraining"] is None:
            why.setdefault(f"no budget for {{}}: {row['reason']}", []).append(row["selector"])
        elif row["budget"] == 0:
            harm = max(point.get("preservation", 0) for point in points if point["beta"] == 0)
            note = f"nothing has to go for {{}}: with all texts kept the harm is {harm:.3g} nats"
            why.setdefault(note, []).append(row["selector"])
    notes = [note.format(", ".join(names)) for note, names in why.items()]
    if any(row["retraining"] is not None for row in rows):
        notes.append(_PREDICTED)
    if any(
        row["target"] == "removal" and row["retraining"] is None and row["budget"] for row in rows
    ):
        notes.append(LIMIT)
    return notes
