"""Make the page to browse a ranking: one HTML file with the data in it, which loads nothing.

Texts come in as JSON in which no ``<`` is left, and reach the screen as text nodes alone. Of more
than ``MOST_TEXTS`` texts it has the first half of as many, and others evenly down to the last.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from mamushi.evaluation.masking import mask

PAGE_FOLDER = Path(__file__).parent / "page"
MOST_TEXTS = 20_000
"""Texts on the page: some 10 MB, which a browser opens and searches at once."""


def page_data(
    ids: Sequence[str],
    selectors: Sequence[Mapping[str, Any]],
    texts: Callable[[Sequence[str]], Sequence[str]],
    budgets: Sequence[float | str],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what the page shows, ready for JSON: examples of n1 ``ids`` in the order of the first
    of ``selectors``, each with its ``ranks`` (R, n1), the first its own, and ``scores`` (n1,).

    ``texts`` gives those of some ids, unmasked; ``named`` is added as it is.
    """
    rows = np.argsort(selectors[0]["ranks"][0])
    if len(rows) > MOST_TEXTS:
        first, rest = np.split(rows, [MOST_TEXTS // 2])
        drawn = np.linspace(0, len(rest) - 1, MOST_TEXTS - len(first)).astype(np.int64)
        rows = np.concatenate([first, rest[drawn]])
    shown = [ids[row] for row in rows]
    about = [
        {
            **{name: selector[name] for name in ("name", "verdict", "compared")},
            "ranks": selector["ranks"][0][rows].tolist(),
            "scores": [float(f"{score:.6g}") for score in selector["scores"][rows]],
            "again": selector["ranks"][1:, rows].tolist(),
        }
        for selector in selectors
    ]
    return {
        **{**named, "budgets": [format(Decimal(str(beta)), "f") for beta in budgets]},
        **{"selectors": about, "total": len(ids), **page_texts(shown, texts(shown))},
    }


def page_texts(ids: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """Return texts as a page has them: masked, and ``hidden`` has by position what is."""
    masked = [mask(text) for text in texts]
    behind = {str(i): hidden(*pair) for i, pair in enumerate(zip(masked, texts, strict=True))}
    return {
        "ids": ids,
        "texts": masked,
        "hidden": {i: words for i, words in behind.items() if words},
    }


def hidden(shown: str, text: str) -> list[list[Any]]:
    """Return what stands in ``text`` behind the stars of ``shown``, as long as it, and from which
    UTF-16 unit of ``shown`` on, since that is how JavaScript counts.

    >>> hidden("Well, d***!", "Well, damn!")
    [[7, 'amn']]
    """
    return [
        [len(shown[:start].encode("utf-16-le", "surrogatepass")) // 2, text[start:stop]]
        for start, stop in (run.span() for run in re.finditer(r"\*+", shown))
        if shown[start:stop] != text[start:stop]
    ]


def ranking_html(title: str, data: Mapping[str, Any]) -> str:
    """Return the HTML of a page that shows ``data`` (of ``page_data``): self-contained, without
    requests. Neither ``title`` nor anything in ``data`` can add markup to it."""
    script = (PAGE_FOLDER / "page.js").read_text(encoding="utf-8")
    return render("page", title=title, script=script, data=json_in_html(data))


def json_in_html(value: Any) -> str:
    """Return JSON that can stand in a ``<script>``: with every ``<`` escaped nothing in it ends the
    element or opens a comment.

    >>> json_in_html("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def render(name: str, folder: Path = PAGE_FOLDER, *, after: str = "", **values: Any) -> str:
    """Fill in the template ``name`` of a ``folder``, with the style sheet beside it, below that of
    the page ``after`` of this room. Its filter ``source`` gives what allows an inline element in a
    Content Security Policy."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader([folder, PAGE_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["url"] = lambda path: quote(path.as_posix())
    env.filters["source"] = lambda text: (
        "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
    )
    sheets = [*([PAGE_FOLDER / f"{after}.css"] if after else []), folder / f"{name}.css"]
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    return env.get_template(f"{name}.html").render(style=style, **values)
