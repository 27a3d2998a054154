"""Answer a user's questions of one dataset and model, by what a results folder has: which list to
take, how many texts have to go, what their removal buys, and what to do next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands.show import table_options
from mamushi.errors import UserError
from mamushi.evaluation.cohort import RETRAINING_SOURCE
from mamushi.evaluation.summary import BASELINE
from mamushi.evidence.advice import AdviceRow, advised, first_budget, take, units_at
from mamushi.evidence.cut import cut
from mamushi.evidence.judgement import ADVICE_WORDS, COMPARISON, REFUSE, UNKNOWN, leading, unit_of
from mamushi.evidence.ranking import excerpt, glimpse, ranking_at, read_ranking, read_texts_of
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table
from mamushi.selection.removals import share_of

ListManifest = Mapping[str, Any]
CellNames = Mapping[str, str | int]
NextStep = tuple[str, str | None]
"""What to do, and the command that does it in the folder that holds the results, if one does."""

ASK = (
    "Ask how many texts another target needs, here nine tenths of the effect:",
    "mamushi advise --removal 0.9",
)
FIRST, AROUND = 10, 5
"""Texts that go first, and texts on either side of the end of the list, as they are shown."""


def answer(
    root: Path, cell: CellNames, lists: Mapping[str, Sequence[ListManifest]], named: str = ""
) -> dict[str, Any]:
    """Return what the start page says of the ``lists`` of a cell, by selector and budget; in parts
    None, or empty, where that is not known. ``named`` is what commands say of the configuration.

    It is of texts where there are any, with the first mask of tokens to act on beside it."""
    of_texts = {name: budgets for name, budgets in lists.items() if "removed" in budgets[0]}
    masks = [lists[name][0] for name in leading(lists) if name not in of_texts]
    masks = [mask for mask in masks if mask["judgement"]["act"] not in (COMPARISON, REFUSE)]
    selector = leading(of_texts or lists)[0]
    how_many = advised(root, cell).get(selector)
    budget = first_budget(how_many) if how_many else None
    chosen = take(lists[selector], budget)
    count, whole, unit = list_size(chosen)
    bought = _bought(root, cell, selector)
    bought_at = take(bought[selector], chosen["beta"]) if bought else None
    page = paths.under("", paths.RANKING, **cell)
    return {
        "cell": cell,
        "selector": selector,
        "take": chosen,
        "reasons": reasons(chosen["judgement"]),
        "size": f"{count:,} of {whole:,} {unit}",
        "cut": cut(root, cell),
        "whole": whole,
        "unit": unit,
        "texts": _texts(root, {**cell, "selector": selector}, count) if of_texts else {},
        "page": page if (root / page).is_file() else None,
        "how_many": how_many,
        **_spans(how_many),
        "budget": budget,
        "asked": (needed := units_at(budget, whole) if budget else None),
        "short": needed is not None and needed > count,
        "shares": [manifest["beta"] for manifest in lists[selector]],
        "bought": bought,
        "bought_at": bought_at,
        "untrained": _unbeaten(root, cell, bought_at["recovered"]) if bought_at else [],
        "next": [
            *next_steps(root, cell, chosen, budget, named),
            *(_masking(root, cell, mask) for mask in masks[:1] if of_texts),
            *([ASK] if how_many else []),
        ],
    }


def list_size(manifest: ListManifest) -> tuple[int, int, str]:
    """Return how many a list has, of how many, and of what."""
    if "removed" in manifest:
        unit = unit_of(manifest) if "share" in manifest else f"forget {unit_of(manifest)}"
        return manifest["removed"], manifest["n_forget"], unit
    return manifest["masked"], manifest["tokens"], "tokens of the forget texts"


def _spans(how_many: AdviceRow | None) -> dict[str, Any]:
    """Return the ends of the interval of the budget that is read first (``sure``) and, where the
    theory's is, those of what retraining may need (``may``)."""
    if how_many is None:
        return {"sure": None, "may": None}
    needed = how_many["retraining_low"], how_many["retraining_high"]
    if how_many["retraining"] is not None:
        return {"sure": needed, "may": None}
    measured = how_many["budget_low"], how_many["budget_high"]
    return {"sure": measured, "may": needed if None not in needed else None}


def reasons(judged: Mapping[str, Any]) -> list[str]:
    """Return what speaks for and against a list, a thought each; of a comparison, why it is one."""
    parts = [judged["ranking"], *([] if judged["act"] == COMPARISON else [judged["list"]])]
    return [reason for words in parts for reason in words.split("; ")]


def next_steps(
    root: Path, cell: CellNames, manifest: ListManifest, budget: float | None, named: str
) -> list[NextStep]:
    """Return what to do next, and what to do for the list of a ``budget`` that was estimated."""
    act = manifest["judgement"]["act"]
    todo: list[NextStep] = []
    if act == COMPARISON:
        todo.append(("Rank with a selector that looks at the texts, such as mamushi.", None))
    elif act == REFUSE:
        todo.append(("Take more texts, or another model to embed them, and rank again.", None))
    else:
        if act == UNKNOWN:
            todo.append(("Read the list first: nothing is known of its worth.", None))
        if "removed" not in manifest:
            return [*todo, _masking(root, cell, manifest)]
        needed = units_at(budget, manifest["n_forget"]) if budget else manifest["removed"]
        short = needed > manifest["removed"]
        write = "Write your table without these texts and their copies:"
        if short:
            write = f"Or {write[0].lower()}{write[1:-1]}, fewer than half of the effect needs:"
        todo.append((write, f"mamushi apply {_quoted(root, manifest)} {table_options(root, cell)}"))
        if needed != manifest["removed"]:
            beta = share_of(needed, manifest["n_forget"])
            make = f"mamushi list --budget {beta} --selector {manifest['selector']}{named}"
            words = f"make the list that the estimate asks for, {needed:,} texts:"
            step = (f"First {words}" if short else f"Or first {words}", make)
            todo.insert(len(todo) - short, step)
    return todo


def _masking(root: Path, cell: CellNames, mask: ListManifest) -> NextStep:
    """Return how to hand a mask of tokens over."""
    count, whole, unit = list_size(mask)
    words = f"Where the model is trained again, leave {count:,} of {whole:,} {unit} out of the loss"
    judged = f"by {mask['path'].parent.name} ({ADVICE_WORDS[mask['judgement']['act']]}):"
    export = f"mamushi export {_quoted(root, mask)} --to labels --out masked.jsonl"
    return f"{words}, {judged}", export


def _quoted(root: Path, manifest: ListManifest) -> str:
    """Return a list's path as a command in the folder that holds ``root`` names it."""
    return shlex.quote(str(Path(root.resolve().name, manifest["path"])))


def _texts(root: Path, names: CellNames, removed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the texts that go first and those about the end of a list, masked; none where the
    ranking or the texts are gone."""
    try:
        ranking = read_ranking(ranking_at(root, names))
        first, cut = glimpse(removed, len(ranking.ids), FIRST, AROUND)
        examples = paths.under(root, paths.EXAMPLES, dataset=names["dataset"])
        texts = read_texts_of(examples, [ranking.ids[place] for place in first + cut])
    except UserError:
        return {}
    rows = [
        {"rank": p + 1, "score": ranking.scores[p], "goes": p < removed, "text": excerpt(text)}
        for p, text in zip(first + cut, texts, strict=True)
    ]
    return {"First to go": rows[: len(first)], "About the end of the list": rows[len(first) :]}


def _bought(root: Path, cell: CellNames, selector: str) -> dict[str, list[AdviceRow]]:
    """Return the rows of the table ``effects`` with a measured share of the gap, of the selector
    and of chance, by budget; nothing where nothing was retrained."""
    path = paths.under(root, paths.TABLE, table="effects")
    try:
        rows = read_table(path, schemas.EFFECTS).to_pylist()
    except UserError:
        return {}
    ours = (cell["dataset"], cell["model"])
    rows = [row for row in rows if (row["dataset"], row["model"]) == ours]
    measured = {
        name: [row for row in rows if row["selector"] == name and row["recovered"] is not None]
        for name in (selector, BASELINE)
    }
    return measured if measured[selector] else {}


def _unbeaten(root: Path, cell: CellNames, recovered: float) -> list[dict[str, Any]]:
    """Return the unlearners that train nothing and, given all forget texts, have recovered as much
    of the gap as a removal: their names and shares, the largest first."""
    path = paths.under(root, paths.TABLE, table=schemas.UNLEARNING.name)
    try:
        rows = read_table(path, schemas.UNLEARNING).to_pylist()
    except UserError:
        return []
    rows = [
        row for row in rows if (row["dataset"], row["model"]) == (cell["dataset"], cell["model"])
    ]
    beta0 = {
        row["seed"]: row["ppl_forget"]
        for row in rows
        if row["unlearner"] == RETRAINING_SOURCE and row["beta"] == 0
    }
    shares = []
    for name in dict.fromkeys(row["unlearner"] for row in rows):
        # All selectors share what unlearned the whole forget set.
        whole = {row["seed"]: row for row in rows if row["unlearner"] == name and row["beta"] == 1}
        from_beta0 = all(row["start_ppl_forget"] == beta0.get(seed) for seed, row in whole.items())
        if not from_beta0 or any(row["steps"] for row in whole.values()):
            continue
        gone, gap = (
            sum(math.log(row[end] / row["start_ppl_forget"]) for row in whole.values())
            for end in ("ppl_forget", "gold_ppl_forget")
        )
        deep = [row["deep"] for row in whole.values()]
        if gap > 0 and gone / gap >= recovered:
            of_deep = None if None in deep else sum(deep) / len(deep)
            shares.append({"name": name, "recovered": gone / gap, "deep": of_deep})
    return sorted(shares, key=lambda share: -share["recovered"])
