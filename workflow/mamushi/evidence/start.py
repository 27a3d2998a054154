"""The start page of a results folder: links to its lists, rankings, figures, tables and report.

It links what is there when it is made, by paths relative to it, so that the folder can be moved or
sent as a whole; it loads the figures beside it and nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import Template
from urllib.parse import quote

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import atomic, read_json
from mamushi.artifacts.tables import FORGET, read_table
from mamushi.errors import UserError
from mamushi.evidence.ranking import PAGE, source, verdict_of


def write(root: Path) -> Path | None:
    """Make the start page of the results folder ``root``; None, and no page, where it has nothing
    to link. Raises ``UserError`` when the disk is full."""
    sections = [*_cells(root), *_all_cells(root)]
    if not sections:
        return None
    skeleton, style = (
        (PAGE / name).read_text(encoding="utf-8") for name in ("start.html", "start.css")
    )
    policy = (
        f"default-src 'none'; style-src '{source(style)}'; img-src 'self' file:; "
        "base-uri 'none'; form-action 'none'"
    )
    body = "\n".join(sections)
    out = paths.under(root, paths.START)
    with atomic(out) as part:
        page = Template(skeleton).substitute(policy=policy, style=style, body=body)
        part.write_text(page, encoding="utf-8", newline="\n")
    return out


def _cells(root: Path) -> Iterator[str]:
    found = [
        cell
        for folder in root.glob("runs/*/*/seed*")
        if (cell := paths.wildcards(paths.CELL, folder)) and cell["seed"].isdigit()
    ]
    for cell in sorted(found, key=lambda c: (c["dataset"], c["model"], int(c["seed"]))):
        del cell["root"]
        parts = [*_verdict(root, cell), *_pages(root, cell), *_lists(root, cell)]
        parts += _figures(root, root.glob(_pattern(paths.CELL_FIGURE_PNG, figure="*", **cell)))
        if parts:
            title = f"{cell['dataset']}, {cell['model']}, seed {cell['seed']}"
            yield _section(title, parts)


def _verdict(root: Path, cell: dict[str, str]) -> Iterator[str]:
    path = paths.under(root, paths.CALIBRATED, **cell)
    if not path.exists():
        return
    try:
        domains = read_table(path, schemas.CALIBRATED, ["domain"])["domain"].to_pylist()
        verdict = verdict_of(path)
    except UserError as error:
        yield f'<p class="verdict">No verdict: {html.escape(str(error))}</p>'
        return
    forget = domains.count(FORGET)
    yield f'<p class="verdict">{html.escape(verdict)}</p>'
    retain = len(domains) - forget
    yield f"<p>{forget:,} forget texts are ranked, against {retain:,} retain texts.</p>"


def _pages(root: Path, cell: dict[str, str]) -> Iterator[str]:
    pages = {
        "Ranking to browse": paths.under(root, paths.RANKING, **cell),
        "Labels to look at (CSV)": paths.under(root, paths.TRIAGE_CSV, **cell),
        "What became of the raw texts": paths.under(root, paths.DATA_CARD, dataset=cell["dataset"]),
    }
    yield from _row(_link(root, path, name) for name, path in pages.items() if path.exists())


def _lists(root: Path, cell: dict[str, str]) -> Iterator[str]:
    """A table of the removal lists: a row for each selector, a column for each budget."""
    pattern = _pattern(paths.REMOVAL, selector="*", beta="*", **cell)
    found: dict[str, dict[str, str]] = {}
    for path in sorted(root.glob(pattern)):
        names = paths.wildcards(paths.REMOVAL, path)
        if names:
            found.setdefault(names["selector"], {})[names["beta"]] = _list(root, path)
    if not found:
        return
    budgets = sorted({beta for row in found.values() for beta in row})
    heads = "".join(f'<th scope="col">{html.escape(beta)}</th>' for beta in budgets)
    lines = "".join(
        f'<tr><th scope="row">{html.escape(selector)}</th>'
        + "".join(f"<td>{row.get(beta, '')}</td>" for beta in budgets)
        + "</tr>\n"
        for selector, row in found.items()
    )
    yield (
        '<div class="wide" tabindex="0" role="region" aria-label="Removal lists"><table>'
        "<caption>Removal lists, by budget: ids, and how the list was made</caption>"
        f'<thead><tr><th scope="col">Selector</th>{heads}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _list(root: Path, path: Path) -> str:
    manifest = path.with_suffix(".json")
    if not manifest.exists():
        return _link(root, path, "list")
    try:
        name = f"{read_json(manifest)['removed']:,} texts"
    except (UserError, LookupError, TypeError, ValueError):
        name = "list"
    return f"{_link(root, path, name)} ({_link(root, manifest, 'manifest')})"


def _all_cells(root: Path) -> Iterator[str]:
    """What is not of one cell: report, figures, tables."""
    # Snakemake writes a report where it is told to: all examples of it, here.
    reports = sorted(path for path in root.glob("*.html") if path != paths.under(root, paths.START))
    yield from _titled("Reports", _row(_link(root, path, path.stem) for path in reports))
    figures = [*root.glob("figures/*.png"), *root.glob("figures/study/*.png")]
    yield from _titled("Figures", _figures(root, figures))
    tables = sorted(root.glob("tables/**/*.csv"))
    yield from _titled("Tables", _row(_table(root, path) for path in tables))


def _table(root: Path, path: Path) -> str:
    name = path.relative_to(root / "tables").with_suffix("").as_posix()
    digits = path.with_suffix(".parquet")
    beside = f" ({_link(root, digits, 'Parquet')})" if digits.exists() else ""
    return _link(root, path, name) + beside


def _figures(root: Path, found: Iterable[Path]) -> Iterator[str]:
    shown = []
    for path in sorted(found):
        # Of a cell the folder in the figures says what it shows, of all cells the file does.
        name = path.relative_to(root / "figures").with_suffix("").as_posix()
        name = name.split("/")[0] if name.count("/") > 1 else name.removeprefix("study/")
        large = path.with_suffix(".pdf") if path.with_suffix(".pdf").exists() else path
        image = f'<img src="{_to(root, path)}" alt="" loading="lazy"><br>{html.escape(name)}'
        shown.append(f'<figure><a href="{_to(root, large)}">{image}</a></figure>')
    if shown:
        yield f'<div class="figures">{"".join(shown)}</div>'


def _pattern(pattern: str, **names: str) -> str:
    return pattern.format(**names).removeprefix("results/")


def _titled(title: str, parts: Iterable[str]) -> Iterator[str]:
    found = [*parts]
    if found:
        yield _section(title, found)


def _section(title: str, parts: Sequence[str]) -> str:
    inside = "\n".join(parts)
    return f"<section>\n<h2>{html.escape(title)}</h2>\n{inside}\n</section>"


def _row(links: Iterable[str]) -> Iterator[str]:
    items = "".join(f"<li>{link}</li>" for link in links)
    if items:
        yield f'<ul class="row">{items}</ul>'


def _link(root: Path, path: Path, name: str) -> str:
    return f'<a href="{_to(root, path)}">{html.escape(name)}</a>'


def _to(root: Path, path: Path) -> str:
    return html.escape(quote(path.relative_to(root).as_posix()))
