"""Answer a user's questions of one dataset and model, by what a results folder has: which list to
take, how many texts have to go, what their removal buys, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands.show import table_options
from mamushi.errors import UserError
from mamushi.evidence.advice import AdviceRow, advised, first_budget, take, units_at
from mamushi.evidence.cut import cut
from mamushi.evidence.verdict import COMPARISON, REFUSE, leading, unit_of
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table
from mamushi.selection.removals import share_of

ListManifest = Mapping[str, Any]
CellNames = Mapping[str, str | int]


def answer(
    root: Path, cell: CellNames, lists: Mapping[str, Sequence[ListManifest]], named: str = ""
) -> dict[str, Any]:
    """Return what the start page says of the ``lists`` of a cell, by selector and budget; in parts
    None, or empty, where that is not known. ``named`` is what commands say of the configuration.

    It is of texts where there are any, else of masks of tokens."""
    of_texts = {name: budgets for name, budgets in lists.items() if "removed" in budgets[0]}
    selector = leading(of_texts or lists)[0]
    how_many = advised(root, cell).get(selector)
    budget = first_budget(how_many) if how_many else None
    chosen = take(lists[selector], budget)
    count, whole, unit = list_size(chosen)
    asked = units_at(budget, whole) if budget else None
    page = paths.under("", paths.RANKING, **cell)
    return {
        **{"cell": cell, "selector": selector, "take": chosen, "cut": cut(root, cell)},
        **{"size": f"{count:,} of {whole:,} {unit}", "whole": whole, "unit": unit},
        **{"how_many": how_many, "budget": budget, "asked": asked},
        "short": asked is not None and asked > count,
        "page": page if (root / page).is_file() else None,
        "bought": _bought(root, cell, selector, chosen["beta"]),
        "next": next_steps(root, cell, chosen, asked, named),
    }


def list_size(manifest: ListManifest) -> tuple[int, int, str]:
    """Return how many a list has, of how many, and of what."""
    if "removed" in manifest:
        unit = unit_of(manifest) if "share" in manifest else f"forget {unit_of(manifest)}"
        return manifest["removed"], manifest["n_forget"], unit
    return manifest["masked"], manifest["tokens"], "tokens of the forget texts"


def next_steps(
    root: Path, cell: CellNames, manifest: ListManifest, asked: int | None, named: str
) -> list[tuple[str, str | None]]:
    """Return what to do next, each with the command that does it in the folder that holds the
    results, if one does; ``asked`` is how many texts an estimate asks for."""
    act = manifest["judgement"]["act"]
    if act == COMPARISON:
        return [("Rank with a selector that looks at the texts, such as mamushi.", None)]
    if act == REFUSE:
        return [("Take more texts, or another model to embed them, and rank again.", None)]
    path = shlex.quote(str(Path(root.resolve().name, manifest["path"])))
    if "removed" not in manifest:
        export = f"mamushi export {path} --to labels --out masked.jsonl"
        return [("Train again with these tokens left out of the loss:", export)]
    write = "Write your table without the listed texts and their copies:"
    todo: list[tuple[str, str | None]] = [
        (write, f"mamushi apply {path} {table_options(root, cell)}")
    ]
    if asked and asked != manifest["removed"]:
        beta = share_of(asked, manifest["n_forget"])
        make = f"mamushi list --budget {beta} --selector {manifest['selector']}{named}"
        todo.insert(0, (f"Make the list that the estimate asks for, {asked:,} texts:", make))
    return todo


def _bought(root: Path, cell: CellNames, selector: str, beta: float) -> AdviceRow | None:
    """Return the row of the table ``effects`` for a selector's list of a budget; None where nothing
    was retrained."""
    try:
        table = read_table(paths.under(root, paths.TABLE, table="effects"), schemas.EFFECTS)
    except UserError:
        return None
    ours = (cell["dataset"], cell["model"], selector)
    rows = [
        row
        for row in table.to_pylist()
        if (row["dataset"], row["model"], row["selector"]) == ours and row["recovered"] is not None
    ]
    return take(rows, beta) if rows else None
