"""The start page of a results folder: for each dataset and model which texts should go, how many
and what to do next; then what is there, by paths relative to the page."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.evidence.advice import choose_list, first_budget, units_at
from mamushi.evidence.ranking import cut, read_manifests
from mamushi.evidence.verdict import ADVICE_WORDS, order_lists, unit_of
from mamushi.io import paths
from mamushi.io.files import write_text
from mamushi.io.tables import read_table
from mamushi.selection.removals import share_of
from mamushi_curate.commands.show import table_options
from mamushi_extras.effects.schemas import EFFECTS
from mamushi_extras.pages.ranking_page import render

Manifest = Mapping[str, Any]
LINKED = {
    "Rankings to browse": "runs/*/*/*/ranking.html",
    "Reports": "[!i]*.html",  # all but this page
    "Tables": "tables/**/*.csv",
    "What became of the raw texts": "data/*/card.json",
}
"""What the page links of a results folder."""


def write_start_page(root: Path, configfiles: Sequence[str] = ()) -> Path | None:
    """Write the start page of the results folder ``root``; None where it has nothing to link. Its
    commands name the ``configfiles``. A damaged manifest costs the answers and not the page."""
    named = " " + shlex.join(["--configfile", *configfiles]) if configfiles else ""
    out, answers = paths.under(root, paths.START), list[dict[str, Any]]()
    with suppress(UserError, LookupError):
        answers = read_answers(root, named)
    links = {title: files_at(root, pattern) for title, pattern in LINKED.items()}
    figures = files_at(root, "figures/*.png") + files_at(root, "figures/study/*.png")
    if not (answers or figures or any(links.values())):
        return None
    words: dict[str, Any] = {"named": named, "advice": ADVICE_WORDS, "answers": answers}
    write_text(out, render("start", links=links, figures=figures, **words))
    return out


def read_answers(root: Path, named: str) -> list[dict[str, Any]]:
    """Return the ``answer`` of each dataset and model that has lists, by its first seed."""
    names, lists = ("dataset", "model", "seed"), dict[tuple[Any, ...], dict[str, list[Manifest]]]()
    for pattern in (paths.MANIFEST, paths.SPANS_MANIFEST):
        for manifest in read_manifests(root, pattern)[0]:
            cell = tuple(manifest[name] for name in names)
            relative = {**manifest, "path": manifest["path"].relative_to(root)}
            lists.setdefault(cell, {}).setdefault(manifest["selector"], []).append(relative)
    first = {cell[:2]: cell for cell in sorted(lists, reverse=True)}
    cells = sorted(first.values())
    return [answer(root, dict(zip(names, cell, strict=True)), lists[cell], named) for cell in cells]


def answer(
    root: Path, cell: Mapping[str, Any], lists: Mapping[str, Sequence[Manifest]], named: str
) -> dict[str, Any]:
    """Return which of the ``lists`` of a cell, by selector and budget, to take, how many texts have
    to go, and what commands are given: of texts where there are any, else of masks of tokens."""
    of_texts = {name: budgets for name, budgets in lists.items() if "removed" in budgets[0]}
    order = order_lists(of_texts or lists)
    chosen, how_many = choose_list(root, cell, order[0], lists[order[0]])
    budget, (count, total, unit) = first_budget(how_many), list_size(chosen)
    asked = units_at(budget, total) if budget else None
    page, make = paths.under("", paths.RANKING, **cell), None
    if asked and "removed" in chosen and asked != count:
        make = f"mamushi list --budget {share_of(asked, total)} --selector {order[0]}{named}"
    return {
        **{"cell": cell, "selector": order[0], "take": chosen, "cut": cut(root, cell)},
        **{"size": f"{count:,} of {total:,} {unit}", "total": total, "unit": unit},
        **{"how_many": how_many, "budget": budget, "asked": asked},
        "others": {name: lists[name] for name in order[1:]},
        "page": page if (root / page).is_file() else None,
        **{"make": make, "table": table_options(root, cell)},
        "list": shlex.quote(str(Path(root.resolve().name, chosen["path"]))),
        "figures": files_at(root, str(paths.under("", paths.CELL_FIGURE_PNG, figure="*", **cell))),
        "bought": read_bought(root, cell, chosen),
    }


def read_bought(root: Path, cell: Mapping[str, Any], chosen: Manifest) -> list[str]:
    """Return in words what retraining without a list recovers of the gap to gold, and of its deep
    part, net; nothing where that was not measured."""
    if not (path := paths.under(root, paths.TABLE, table="effects")).is_file():
        return []
    names = {"selector": chosen["selector"], "beta": float(chosen["beta"])}
    names |= {name: cell[name] for name in ("dataset", "model")}
    rows = read_table(path, EFFECTS).to_pylist()
    row = next((row for row in rows if names.items() <= row.items()), None)
    return [share_words(row, name) for name in ("recovered_net", "deep_net")] if row else []


def share_words(row: Mapping[str, Any], name: str) -> str:
    """Return a share with its interval, or with the reason why there is none."""
    share, low, high, reason = (row[name + end] for end in ("", "_low", "_high", "_withheld"))
    if low is not None:
        return f"{share:.0%} [{100 * low:.0f}, {100 * high:.0f}]"
    return f"not told ({reason})" if share is None else f"{share:.0%} ({reason.partition(':')[0]})"


def list_size(manifest: Manifest) -> tuple[int, int, str]:
    """Return how many a list has, of how many, and of what."""
    if "removed" in manifest:
        unit = unit_of(manifest) if "share" in manifest else f"forget {unit_of(manifest)}"
        return manifest["removed"], manifest["n_forget"], unit
    return manifest["masked"], manifest["tokens"], "tokens of the forget texts"


def files_at(root: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in the results folder, by paths from there."""
    return sorted(path.relative_to(root) for path in root.glob(pattern))
