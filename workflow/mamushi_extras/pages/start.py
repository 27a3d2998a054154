"""The start page of a results folder: for each dataset and model which texts should go, how many,
what that buys and what to do next; then all that is there, by paths relative to the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.config.grid import unmeasurable
from mamushi.errors import UserError
from mamushi.evaluation.crossed import OVERSHOOTS
from mamushi.evidence.ranking import is_earlier
from mamushi.evidence.verdict import ADVICE_WORDS, COMPARISON, leading
from mamushi.io import paths
from mamushi.io.files import atomic, read_json
from mamushi.registry import plugins
from mamushi_extras.pages.answer import answer, list_size
from mamushi_extras.pages.ranking_page import render


def write_start_page(
    root: Path, configfiles: Sequence[str] = (), config: Mapping[str, Any] | None = None
) -> Path | None:
    """Write the start page of the results folder ``root``; None where it has nothing to link. Its
    commands name the ``configfiles``; by the complete ``config``, it offers no retraining where
    none is possible."""
    named = " " + shlex.join(["--configfile", *configfiles]) if configfiles else ""
    places = [
        cell
        for folder in root.glob("runs/*/*/seed*")
        if (cell := paths.wildcards(paths.CELL, folder)) and cell["seed"].isdigit()
    ]
    places.sort(key=lambda cell: (cell["dataset"], cell["model"], int(cell["seed"])))
    cells = [facts for place in places if (facts := _cell(root, place))]
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in cells:
        cell, judged = entry["cell"], entry["manifests"]
        if judged and (pair := (cell["dataset"], cell["model"])) not in answers:
            answers[pair] = answer(root, cell, judged, named) | {
                "hindered": _hindered(config, cell)
            }
    out = paths.under(root, paths.START)
    rows: dict[str, list[Any]] = {
        # Snakemake writes a report where it is told to: all examples of it, here.
        "Reports": [(path, path.stem, None) for path in _inside(root, "*.html", but=out.name)],
        "Figures": _figures(root, "figures/*.png", "figures/study/*.png"),
        "Tables": [
            (path, str(path.relative_to("tables").with_suffix("")), _beside(root, path, ".parquet"))
            for path in _inside(root, "tables/**/*.csv")
        ],
    }
    if not cells and not any(rows.values()):
        return None
    page = render(
        "start",
        cells=cells,
        answers=list(answers.values()),
        named=named,
        overshoots=OVERSHOOTS,
        rows=rows,
        advice=ADVICE_WORDS,
    )
    with atomic(out) as part:
        part.write_text(page, encoding="utf-8", newline="\n")
    return out


def _hindered(config: Mapping[str, Any] | None, cell: Mapping[str, str]) -> str | None:
    """Return why nothing can be retrained and measured for a cell of the configuration."""
    dataset, model = cell["dataset"], cell["model"]
    if config is None or dataset not in config["datasets"] or model not in config["models"]:
        return None
    return unmeasurable(config, dataset, model)


def _cell(root: Path, cell: dict[str, str]) -> dict[str, Any] | None:
    """Return what a cell has to show and to link, None where that is nothing."""
    del cell["root"]
    pages = {
        paths.RANKING: "Ranking to browse",
        paths.DATA_CARD: "What became of the raw texts",
    }
    lists: dict[str, dict[str, Any]] = {}
    manifests: dict[str, list[Any]] = {}
    wildcards = {"selector": "*", "beta": "*", **cell}
    patterns = (paths.REMOVAL, paths.SPANS)
    for pattern, path in (
        (p, listed) for p in patterns for listed in _inside(root, _pattern(p, **wildcards))
    ):
        if names := paths.wildcards(pattern, root / path):
            manifest = _manifest(root / path.with_suffix(".json"))
            size, advice = ("list", "")
            inputs = (manifest or {}).get("provenance", {}).get("inputs", {})
            if is_earlier(root, {**cell, "selector": names["selector"]}, inputs):
                advice = "of an earlier ranking"
            elif manifest:
                manifest |= {"path": path, "beta": float(names["beta"])}
                manifests.setdefault(names["selector"], []).append(manifest)
                unit = "texts" if "removed" in manifest else "tokens"
                size = f"{list_size(manifest)[0]:,} {unit}"
                act = manifest["judgement"]["act"]
                advice = "" if act == COMPARISON else ADVICE_WORDS[act]
            shown = (path, size, _beside(root, path, ".json"), advice)
            lists.setdefault(names["selector"], {})[names["beta"]] = shown
    order = leading(manifests)
    facts = {
        "manifests": manifests,
        "pages": [
            (place, name)
            for pattern, name in pages.items()
            if (root / (place := Path(_pattern(pattern, **cell)))).exists()
        ],
        "lists": {name: lists[name] for name in dict.fromkeys([*order, *lists])},
        "worth": {name: manifests[name][0]["judgement"] for name in order},
        "budgets": sorted({beta for by_budget in lists.values() for beta in by_budget}),
        "figures": _figures(root, _pattern(paths.CELL_FIGURE_PNG, figure="*", **cell)),
    }
    title = f"{cell['dataset']}, {cell['model']}, seed {cell['seed']}"
    return {"title": title, "cell": cell, **facts} if any(facts.values()) else None


def _manifest(path: Path) -> dict[str, Any] | None:
    """Read a manifest; None where it is missing, damaged, or of a version that did not judge."""
    try:
        manifest = read_json(path)
        needed = ("n_forget", "n_retain", "expected", "judgement")
        return manifest if all(key in manifest for key in needed) else None
    except (UserError, TypeError, ValueError):
        return None


def _figures(root: Path, *patterns: str) -> list[dict[str, Any]]:
    """Return of each figure what is shown and what is opened, its name and what it shows in
    words."""
    figures = []
    for path in sorted(path for pattern in patterns for path in _inside(root, pattern)):
        # Of a cell the folder in the figures says what it shows, of all cells the file does.
        parts = path.relative_to("figures").with_suffix("").parts
        name, study = parts[0] if len(parts) > 2 else parts[-1], parts[0] == "study"
        figure = plugins("figure").get("sad" if study else name)
        caption = figure.summary if figure else ""
        large = _beside(root, path, ".pdf") or path
        figures.append({"path": path, "large": large, "name": name, "words": caption})
    return figures


def _inside(root: Path, pattern: str, but: str | None = None) -> Iterable[Path]:
    return sorted(path.relative_to(root) for path in root.glob(pattern) if path.name != but)


def _beside(root: Path, path: Path, suffix: str) -> Path | None:
    neighbour = path.with_suffix(suffix)
    return neighbour if (root / neighbour).exists() else None


def _pattern(pattern: str, **names: str) -> str:
    return pattern.format(**names).removeprefix("results/")
