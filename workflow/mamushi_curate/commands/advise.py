"""Recommend how much to remove, before any retraining: the budget of each selector for one target.

Reads what is foreseen in a results folder, of all its seeds, and prints a table. Give one target:
the share of the full removal's effect to reach, or the harm that the retain domain may keep.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.io import paths
from mamushi_curate.commands import _options

NAMES = ("dataset", "model", "selector")
HEAD = (*NAMES, "remove", "share", "span", "list, or why there is none")


def run(
    *,
    removal: float | None = None,
    preservation: float | None = None,
    root: Path = paths.RESULTS,
) -> tuple[int, Any]:
    """Raises ``UserError`` when there is no frontier of what was asked for.

    :param removal: Smallest budget that reaches this share of what removing everything does.
    :param preservation: Or that has at most this KL(retain || mixture), in nats per text.
    :param root: Results folder.
    """
    from mamushi.evidence.advice import advice, first_budget, read_results

    target = _options.check_one(removal=removal, preservation=preservation)
    value = (removal or 0.0) if preservation is None else preservation
    frontier, foreseen = read_results(root)
    rows = advice(frontier, [(target, value)], foreseen)
    totals: dict[tuple[str, ...], int] = {}
    for point in (*frontier, *foreseen):
        key = tuple(point[name] for name in NAMES)
        totals[key] = max(totals.get(key, 0), point["removed"])
    rows.sort(key=lambda row: (row["dataset"], row["model"], first_budget(row) or 2.0))
    table = [HEAD, *(_advice_cells(row, totals, root) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    value = rows[0]["value"]
    harm = f"harm to the retain domain of at most {value:g} nats per text"
    print(harm if target == "preservation" else f"{100 * value:g}% of the full removal")
    for line in table:
        print("  ".join(map(str.ljust, line, widths)).rstrip())
    for limit in dict.fromkeys(row["limit"] for row in rows if row["limit"]):
        print(limit)
    return 0, rows


def _advice_cells(
    row: Mapping[str, Any], totals: Mapping[tuple[str, ...], int], root: Path
) -> tuple[str, ...]:
    """Return what is printed of a selector: its budget with the list there, or what makes it."""
    from mamushi.evidence.advice import OF_TOKENS, first_budget, units_at
    from mamushi.selection.removals import share_of

    names = tuple(row[name] for name in NAMES)
    if not (budget := first_budget(row)):
        return *names, "", "", "", row["reason"] or "nothing has to go"
    units, is_of_tokens = units_at(budget, totals[names]), row["reason"] == OF_TOKENS
    beta = paths.beta(round(budget, 2)) if is_of_tokens else share_of(units, totals[names])
    pattern = paths.SPANS if is_of_tokens else paths.REMOVAL
    cell = {**dict(zip(NAMES, names, strict=True)), "beta": beta}
    lists = sorted(root.glob(str(paths.under("", pattern, **cell, seed="*"))))
    command = f"mamushi list --budget {beta} --selector {row['selector']}"
    command = f"mamushi run {pattern.format(**cell, seed=0)}" if is_of_tokens else command
    return (
        *(*names, f"{units:,} {'tokens' if is_of_tokens else 'texts'}", f"{100 * float(beta):g}%"),
        row["span"],
        " ".join(map(str, lists)) or command,
    )
