"""The start page of a results folder, which links what is there by paths relative to it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import atomic, read_json
from mamushi.artifacts.tables import FORGET, read_table
from mamushi.errors import UserError
from mamushi.evidence.ranking import render, verdict_of

Figure = tuple[Path, Path, str]
"""What is shown of a figure, what is opened, and its name; like all paths relative to the page."""


def write(root: Path) -> Path | None:
    """Write the start page of the results folder ``root``; None where it has nothing to link."""
    found = [
        cell
        for folder in root.glob("runs/*/*/seed*")
        if (cell := paths.wildcards(paths.CELL, folder)) and cell["seed"].isdigit()
    ]
    found.sort(key=lambda cell: (cell["dataset"], cell["model"], int(cell["seed"])))
    cells = [about for cell in found if (about := _cell(root, cell))]
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
    with atomic(out) as part:
        page = render("start", cells=cells, rows=rows)
        part.write_text(page, encoding="utf-8", newline="\n")
    return out


def _cell(root: Path, cell: dict[str, str]) -> dict[str, Any] | None:
    """Return what a cell has to show and to link, None where that is nothing."""
    del cell["root"]
    pages = {
        paths.RANKING: "Ranking to browse",
        paths.TRIAGE_CSV: "Labels to look at (CSV)",
        paths.DATA_CARD: "What became of the raw texts",
    }
    lists: dict[str, dict[str, Any]] = {}
    for path in _inside(root, _pattern(paths.REMOVAL, selector="*", beta="*", **cell)):
        if names := paths.wildcards(paths.REMOVAL, root / path):
            manifest = _beside(root, path, ".json")
            shown = (path, _size(root, manifest), manifest)
            lists.setdefault(names["selector"], {})[names["beta"]] = shown
    about = {
        **_verdict(paths.under(root, paths.CALIBRATED, **cell)),
        "pages": [
            (place, name)
            for pattern, name in pages.items()
            if (root / (place := Path(_pattern(pattern, **cell)))).exists()
        ],
        "lists": lists,
        "budgets": sorted({beta for by_budget in lists.values() for beta in by_budget}),
        "figures": _figures(root, _pattern(paths.CELL_FIGURE_PNG, figure="*", **cell)),
    }
    title = f"{cell['dataset']}, {cell['model']}, seed {cell['seed']}"
    return {"title": title, **about} if any(about.values()) else None


def _verdict(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"verdict": None, "counts": None}
    try:
        domains = read_table(path, schemas.CALIBRATED, ["domain"])["domain"].to_pylist()
        forget = domains.count(FORGET)
        return {"verdict": verdict_of(path), "counts": (forget, len(domains) - forget)}
    except UserError as error:
        return {"verdict": f"No verdict: {error}", "counts": None}


def _size(root: Path, manifest: Path | None) -> str:
    try:
        return f"{read_json(root / manifest)['removed']:,} texts" if manifest else "list"
    except (UserError, LookupError, TypeError, ValueError):
        return "list"


def _figures(root: Path, *patterns: str) -> list[Figure]:
    def name(path: Path) -> str:
        # Of a cell the folder in the figures says what it shows, of all cells the file does.
        parts = path.relative_to("figures").with_suffix("").as_posix()
        return parts.split("/")[0] if parts.count("/") > 1 else parts.removeprefix("study/")

    found = sorted(path for pattern in patterns for path in _inside(root, pattern))
    return [(path, _beside(root, path, ".pdf") or path, name(path)) for path in found]


def _inside(root: Path, pattern: str, but: str | None = None) -> Iterable[Path]:
    return sorted(path.relative_to(root) for path in root.glob(pattern) if path.name != but)


def _beside(root: Path, path: Path, suffix: str) -> Path | None:
    other = path.with_suffix(suffix)
    return other if (root / other).exists() else None


def _pattern(pattern: str, **names: str) -> str:
    return pattern.format(**names).removeprefix("results/")
