"""Recommend how much to remove, before any retraining: the budget of each selector for one target.

Reads what is foreseen in a results folder, of all its seeds, and prints a table. Give one target:
the share of the full removal's effect to reach, or the harm that the retain domain may keep.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
        return
    points = [*frontier, *foreseen]
    pairs = dict.fromkeys((row["dataset"], row["model"]) for row in rows)
    blocks = []
    for pair in pairs:
        of_rows, of_points = (
            [row for row in of if (row["dataset"], row["model"]) == pair] for of in (rows, points)
        )
        blocks.append("\n".join(_block(of_rows, of_points, args.root)))
    print("\n\n".join(blocks))


def _block(rows: Sequence[_Row], points: Sequence[_Row], root: Path) -> Iterator[str]:
    """Yield the lines of a dataset and model, best selector first; ``points`` are the rows of
    frontiers and predictions that the advice is made from."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget

    totals: dict[str, int] = defaultdict(int)
    for point in points:
        totals[point["selector"]] = max(totals[point["selector"]], point["removed"])
    seeds = {point["seed"] for point in points}
    rows = sorted(rows, key=lambda row: (first_budget(row) is None, first_budget(row) or 0.0))
    texts = [totals[row["selector"]] for row in rows if row["reason"] != OF_TOKENS]
    of = f"{len(seeds)} seed{'s' * (len(seeds) > 1)}, {[*texts, 0][0]:,} forget texts"
    yield f"{rows[0]['dataset']}, {rows[0]['model']}: {target_text(rows[0])} ({of})"
    useful = [row for row in rows if first_budget(row)]
    table = [_cells(row, totals[row["selector"]], root, min(seeds)) for row in useful]
    table = [["selector", "remove", "share", "95% interval", "list"], *table] if table else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    yield from ("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)
    yield from _notes(rows, points)


def target_text(row: _Row) -> str:
    """Return the target of a row in words."""
    if row["target"] == "preservation":
        return f"harm to the retain domain of at most {row['value']:g} nats per text"
    return f"{100 * row['value']:g}% of the full removal"


def _cells(row: _Row, total: int, root: Path, seed: int) -> list[str]:
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
    return [
        *(row["selector"], f"{units:,} {'tokens' if is_of_tokens else 'texts'}"),
        *(f"{100 * float(beta):g}%", f"{row[f'{of}_low']:.0%} to {row[f'{of}_high']:.0%}"),
        " ".join(map(str, lists)) or command,
    ]


def _notes(rows: Sequence[_Row], points: Sequence[_Row]) -> Iterator[str]:
    """Yield what is said of selectors without a budget, or that need none, and of how sure the
    others are."""
    why: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["reason"] and row["retraining"] is None:
            why[f"no budget for {{}}: {row['reason']}"].append(row["selector"])
        elif row["budget"] == 0:
            harm = max(point.get("preservation", 0) for point in points if point["beta"] == 0)
            note = f"nothing has to go for {{}}: with all texts kept the harm is {harm:.3g} nats"
            why[note].append(row["selector"])
    yield from (note.format(", ".join(names)) for note, names in why.items())
    if any(row["retraining"] is not None for row in rows):
        yield _PREDICTED
    by_theory = [row for row in rows if row["retraining"] is None and row["budget"]]
    if any(row["target"] == "removal" for row in by_theory):
        yield LIMIT
