"""The start page of a results folder: for each dataset and model which texts should go, how many
and what to do next; then all that is there, by paths relative to the page."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mamushi.commands.show import table_options
from mamushi.errors import UserError
from mamushi.evidence.advice import advised, first_budget, row_for_budget, units_at
from mamushi.evidence.ranking import cut, read_manifests
from mamushi.evidence.verdict import ADVICE_WORDS, COMPARISON, leading, unit_of
from mamushi.io import paths
from mamushi.io.files import atomic
from mamushi.selection.removals import share_of
from mamushi_extras.pages.ranking_page import render

Cell = Mapping[str, str]
Manifest = Mapping[str, Any]


def write_start_page(root: Path, configfiles: Sequence[str] = ()) -> Path | None:
    """Write the start page of the results folder ``root``; None where it has nothing to link. Its
    commands name the ``configfiles``."""
    named = " " + shlex.join(["--configfile", *configfiles]) if configfiles else ""
    places = [paths.wildcards(paths.CELL, folder) for folder in root.glob("runs/*/*/seed*")]
    seeds = [place for place in places if place and place.pop("root") and place["seed"].isdigit()]
    seeds.sort(key=lambda cell: (cell["dataset"], cell["model"], int(cell["seed"])))
    cells = [content for cell in seeds if (content := read_cell(root, cell))]
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for content in cells:
        cell, lists = content["cell"], content["manifests"]
        if lists and (pair := (cell["dataset"], cell["model"])) not in answers:
            answers[pair] = answer(root, cell, lists, named)
    out = paths.under(root, paths.START)
    rows: dict[str, list[Any]] = {
        # Snakemake writes a report where it is told to: all examples of it, here.
        "Reports": [
            (page, page.stem, None) for page in _inside(root, "*.html") if page.name != out.name
        ],
        "Figures": _figures(root, "figures/*.png", "figures/study/*.png"),
        "Tables": [
            (path, str(path.relative_to("tables").with_suffix("")), _beside(root, path, ".parquet"))
            for path in _inside(root, "tables/**/*.csv")
        ],
    }
    if not cells and not any(rows.values()):
        return None
    words: dict[str, Any] = {"named": named, "advice": ADVICE_WORDS}
    page = render("start", cells=cells, answers=[*answers.values()], rows=rows, **words)
    with atomic(out) as file:
        file.write_text(page, encoding="utf-8", newline="\n")
    return out


def read_cell(root: Path, cell: Cell) -> dict[str, Any] | None:
    """Return what a cell has to show and to link, None where that is nothing. A damaged manifest,
    or one of another version, costs the lists of the cell and not the page."""
    manifests = defaultdict[str, list[dict[str, Any]]](list)
    lists = defaultdict[str, dict[str, Any]](dict)
    with suppress(UserError, AttributeError, LookupError, TypeError):
        patterns = (paths.MANIFEST, paths.SPANS_MANIFEST)
        for manifest in (one for of in patterns for one in read_manifests(root, of, **cell)[0]):
            path = manifest["path"].relative_to(root)
            count, act = list_size(manifest)[0], manifest["judgement"]["act"]
            size = f"{count:,} {'texts' if 'removed' in manifest else 'tokens'}"
            advice = "" if act == COMPARISON else ADVICE_WORDS[act]
            link = (path, size, path.with_suffix(".json"), advice)
            lists[manifest["selector"]][path.stem.removeprefix("beta")] = link
            manifests[manifest["selector"]].append({**manifest, "path": path})
    pages = {
        paths.under("", paths.RANKING, **cell): "Ranking to browse",
        paths.under("", paths.DATA_CARD, **cell): "What became of the raw texts",
    }
    order = leading(manifests)
    content = {
        "manifests": manifests,
        "pages": [(page, name) for page, name in pages.items() if (root / page).exists()],
        "lists": {name: lists[name] for name in order},
        "worth": {name: manifests[name][0]["judgement"] for name in order},
        "budgets": sorted({beta for by_budget in lists.values() for beta in by_budget}),
        "figures": _figures(root, str(paths.under("", paths.CELL_FIGURE_PNG, figure="*", **cell))),
    }
    title = f"{cell['dataset']}, {cell['model']}, seed {cell['seed']}"
    return {"title": title, "cell": cell, **content} if any(content.values()) else None


def answer(
    root: Path, cell: Cell, lists: Mapping[str, Sequence[Manifest]], named: str
) -> dict[str, Any]:
    """Return which of the ``lists`` of a cell, by selector and budget, to take, how many texts have
    to go, and what commands are given; in parts None, or empty, where that is not known. It is of
    texts where there are any, else of masks of tokens."""
    of_texts = {name: budgets for name, budgets in lists.items() if "removed" in budgets[0]}
    selector = leading(of_texts or lists)[0]
    how_many = advised(root, cell).get(selector)
    chosen = row_for_budget(lists[selector], budget := first_budget(how_many))
    count, total, unit = list_size(chosen)
    asked = units_at(budget, total) if budget else None
    page, make = paths.under("", paths.RANKING, **cell), None
    if asked and "removed" in chosen and asked != count:
        make = f"mamushi list --budget {share_of(asked, total)} --selector {selector}{named}"
    return {
        **{"cell": cell, "selector": selector, "take": chosen, "cut": cut(root, cell)},
        **{"size": f"{count:,} of {total:,} {unit}", "total": total, "unit": unit},
        **{"how_many": how_many, "budget": budget, "asked": asked},
        "short": asked is not None and asked > count,
        "page": page if (root / page).is_file() else None,
        **{"make": make, "table": table_options(root, cell)},
        "list": shlex.quote(str(Path(root.resolve().name, chosen["path"]))),
    }


def list_size(manifest: Manifest) -> tuple[int, int, str]:
    """Return how many a list has, of how many, and of what."""
    if "removed" in manifest:
        unit = unit_of(manifest) if "share" in manifest else f"forget {unit_of(manifest)}"
        return manifest["removed"], manifest["n_forget"], unit
    return manifest["masked"], manifest["tokens"], "tokens of the forget texts"


def _figures(root: Path, *patterns: str) -> list[tuple[Path, Path]]:
    """Return of each figure what is shown and what is opened."""
    return [(path, _beside(root, path, ".pdf") or path) for path in _inside(root, *patterns)]


def _inside(root: Path, *patterns: str) -> Iterable[Path]:
    return sorted(path.relative_to(root) for pattern in patterns for path in root.glob(pattern))


def _beside(root: Path, path: Path, suffix: str) -> Path | None:
    neighbour = path.with_suffix(suffix)
    return neighbour if (root / neighbour).exists() else None
