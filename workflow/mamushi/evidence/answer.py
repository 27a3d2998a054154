"""Answer a user's questions of one dataset and model, by what a results folder has: which list to
take, how many texts have to go, what their removal buys, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.evidence.advice import (
    BASELINE,
    ROUNDING,
    Row,
    advice,
    first_budget,
    read_results,
    units_at,
)
from mamushi.evidence.judgement import COMPARISON, REFUSE, UNKNOWN, leading
from mamushi.evidence.ranking import excerpt, glimpse, read_ranking, texts_of
from mamushi.selection.removals import share_of

Manifest = Mapping[str, Any]
Cell = Mapping[str, str | int]

TARGET = ("removal", 0.5)
"""Half of what the removal of all forget texts does."""
ASK = (
    "Ask how many texts another target needs, here nine tenths of the effect:",
    "mamushi advise --removal 0.9",
)
FIRST, AROUND = 10, 5
"""Texts that go first, and texts on either side of the end of the list, as they are shown."""


def answer(
    root: Path, cell: Cell, lists: Mapping[str, Sequence[Manifest]], named: str = ""
) -> dict[str, Any]:
    """Return what the start page says of the ``lists`` of a cell, by selector and budget; in parts
    None, or empty, where that is not known. ``named`` is what commands say of the configuration."""
    selector = leading(lists)[0]
    how_many = advised(root, cell).get(selector)
    budget = first_budget(how_many) if how_many else None
    taken = take(lists[selector], budget)
    n1 = taken["n_forget"]
    asked = (units_at(budget, n1), share_of(units_at(budget, n1), n1)) if budget else None
    bought = _bought(root, cell, selector)
    page = paths.under("", paths.RANKING, **cell)
    return {
        "cell": cell,
        "selector": selector,
        "take": taken,
        "reasons": reasons(taken["judgement"]),
        "texts": _texts(root, {**cell, "selector": selector}, taken["removed"]),
        "page": page if (root / page).is_file() else None,
        "how_many": how_many,
        "asked": asked,
        "shares": [each["removed"] / n1 for each in lists[selector]],
        "bought": bought,
        "bought_at": take(bought[selector], taken["removed"] / n1) if bought else None,
        "next": steps(root, cell, taken, asked, named) + ([ASK] if how_many is not None else []),
    }


def advised(root: Path, cell: Cell) -> dict[str, Row]:
    """Return by selector how many texts reach ``TARGET``, see ``advice``; nothing where that was
    not predicted."""
    try:
        found = read_results(root, str(cell["dataset"]), str(cell["model"]))
        rows = advice(found.frontier, found.sad, [TARGET], found.foreseen, found.pilots)
        return {row["selector"]: row for row in rows}
    except UserError:
        return {}


def take(found: Sequence[Manifest], budget: float | None) -> Manifest:
    """Return which of a selector's lists, or rows of a table, by their budgets, is the one for a
    ``budget``: the first that is as large, the last where none is, and the first for None."""
    if budget is None:
        return found[0]
    return next((each for each in found if each["beta"] >= budget - ROUNDING), found[-1])


def reasons(judged: Mapping[str, Any]) -> list[str]:
    """Return what speaks for and against a list, a thought each; of a comparison, why it is one."""
    told = [judged["ranking"], *([] if judged["act"] == COMPARISON else [judged["list"]])]
    return [reason for words in told for reason in words.split("; ")]


def steps(
    root: Path, cell: Cell, taken: Manifest, asked: tuple[int, str] | None, named: str
) -> list[tuple[str, str | None]]:
    """Return what to do next, in words, and the command for the folder that holds ``root``, where
    one does it. ``asked`` is the number of texts that was estimated, and their budget."""
    act = taken["judgement"]["act"]
    found: list[tuple[str, str | None]] = []
    if act == COMPARISON:
        found.append(("Rank with a selector that looks at the texts, such as mamushi.", None))
    elif act == REFUSE:
        found.append(("Take more texts, or another model to embed them, and rank again.", None))
    else:
        if act == UNKNOWN:
            found.append(("Read the list first: nothing is known of its worth.", None))
        path = shlex.quote(str(Path(root.resolve().name, taken["path"])))
        apply = f"mamushi apply {path} {table(root, cell)}"
        found.append(("Write your table without these texts and their copies:", apply))
        if asked and asked[0] != taken["removed"]:
            make = f"mamushi list --budget {asked[1]} --selector {taken['selector']}{named}"
            found.append(
                (f"Or first make the list that the estimate asks for, {asked[0]:,} texts:", make)
            )
    return found


def table(root: Path, cell: Cell) -> str:
    """Return where `apply` finds the table that was ranked, and a name for what is left of it."""
    try:
        card = paths.under(root, paths.DATA_CARD, dataset=cell["dataset"])
        made_with = read_json(card)["settings"]
    except UserError:
        made_with = {"kind": None}
    data = Path(made_with["loader"]["path"]) if made_with["kind"] == "table" else Path("DATA")
    if not data.exists():
        return "--data DATA --out FILE"
    out = Path(f"{data.name.partition('.')[0]}.clean{''.join(data.suffixes)}")
    return f"--data {shlex.quote(str(data))} --out {shlex.quote(str(out))}"


def _texts(root: Path, names: Cell, removed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the texts that go first and those about the end of a list, masked; none where the
    ranking or the texts are gone."""
    try:
        ranking = read_ranking(paths.under(root, paths.SCORES, **names))
        first, cut = glimpse(removed, len(ranking.ids), FIRST, AROUND)
        examples = paths.under(root, paths.EXAMPLES, dataset=names["dataset"])
        texts = texts_of(examples, [ranking.ids[place] for place in first + cut])
    except UserError:
        return {}
    rows = [
        {"rank": p + 1, "score": ranking.scores[p], "goes": p < removed, "text": excerpt(text)}
        for p, text in zip(first + cut, texts, strict=True)
    ]
    return {"First to go": rows[: len(first)], "About the end of the list": rows[len(first) :]}


def _bought(root: Path, cell: Cell, selector: str) -> dict[str, list[Row]]:
    """Return the rows of the table ``effects`` with a measured share of the gap, of the selector
    and of chance, by budget; nothing where nothing was retrained."""
    path = paths.under(root, paths.TABLE, table="effects")
    try:
        rows = read_table(path, schemas.EFFECTS).to_pylist()
    except UserError:
        return {}
    ours = (cell["dataset"], cell["model"])
    rows = [row for row in rows if (row["dataset"], row["model"]) == ours]
    found = {
        name: [row for row in rows if row["selector"] == name and row["recovered"] is not None]
        for name in (selector, BASELINE)
    }
    return found if found[selector] else {}
