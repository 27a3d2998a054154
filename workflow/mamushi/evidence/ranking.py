"""The ranking of a forget set for people: its two ends in a table, and a page to browse all of it.

The page is one HTML file of ``page/page.html``, ``.css`` and ``.js`` with the data in it. It opens
offline: it loads nothing, and its Content Security Policy forbids it to. Texts come in as JSON in
which no ``<`` is left, and reach the screen as text nodes alone, so that no text is read as HTML.
Only the rows that are visible are in the document, which keeps it quick with thousands of texts.
"""

from __future__ import annotations

import hashlib
import html
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.errors import UserError
from mamushi.evaluation.masking import mask
from mamushi.evidence.stability import rankings
from mamushi.selection.refits import of_table

PAGE = Path(__file__).parent / "page"
PAGE_FILES = ("page.html", "page.css", "page.js")
PAGE_SHA256 = "853d42b2f743efe97427ee8634688d5b9b7f4633d23f7da96d335ef72ee060e4"
"""Digest of ``PAGE_FILES``. It is written here so that the digest of the code, which knows Python
alone, changes with them, and a changed page is made again."""

ENDS = 10
EXCERPT = 300
DIGITS = 6
"""Significant digits of a score on the page."""


@dataclass(frozen=True)
class Ranking:
    """A selector's ranking of n1 forget examples, first to go first: ``ids`` and ``scores`` (n1,).

    The rank of an example is its position, from 1. ``again`` (R, n1) are its ranks in the rankings
    made again.
    """

    ids: list[str]
    scores: NDArray[np.float64]
    again: NDArray[np.int64] | None = None


def read_ranking(path: str | Path, refits: str | Path | None = None) -> Ranking:
    """The ranking in a table ``scores``, with those in its table ``refits``.

    Raises ``UserError`` when it is missing or damaged, ranks nothing, does not rank from 1 to n1,
    or has no finite score for an example that it ranks.
    """
    table = read_table(path, schemas.SCORES, ["id", "score", "rank"])
    table = table.filter(table["rank"].is_valid()).sort_by("rank")
    scores = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    again = "delete it and score again"
    if not len(table):
        raise UserError("ranks no example", where=path, do=again)
    if not np.array_equal(table["rank"].to_numpy(), np.arange(1, len(table) + 1)):
        raise UserError(f"its ranks are not 1 to {len(table)}", where=path, do=again)
    ids = table["id"].to_pylist()
    if len(set(ids)) < len(ids):
        raise UserError("an id occurs twice", where=path, do=again)
    if not np.isfinite(scores).all():
        odd = ids[int(np.flatnonzero(~np.isfinite(scores))[0])]
        raise UserError(f"no finite score for example {odd!r}", where=path, do=again)
    if refits is None:
        return Ranking(ids, scores)
    of, ranks = rankings(
        read_table(path, schemas.SCORES), of_table(read_table(refits, schemas.REFITS))
    )
    place = {name: position for position, name in enumerate(of)}
    return Ranking(ids, scores, ranks[1:, [place[name] for name in ids]])


def texts_of(examples: str | Path, ids: Sequence[str]) -> list[str]:
    """The texts of ``ids``, in their order, as they are.

    Raises ``UserError`` for an id that the table ``examples`` lacks.
    """
    table = read_table(examples, schemas.EXAMPLES, ["id", "text"])
    found = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    missing = [name for name in ids if name not in found]
    if missing:
        raise UserError(
            f"has no example {missing[0]!r}, which is ranked",
            where=examples,
            do="delete the scores and score again",
        )
    return [found[name] for name in ids]


def excerpt(text: str, length: int = EXCERPT) -> str:
    """``text`` masked, white space folded, at most ``length`` characters, the last an ellipsis.

    It is masked before it is cut, because a piece of a word may not be known for what it is.
    """
    folded = " ".join(mask(text).split())
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def ends(ranking: Ranking, places: int = ENDS) -> list[dict[str, Any]]:
    """The first and the last ``places`` of a ranking: ``end, place, rank, score, id``.

    Place 1 of the bottom is the last rank. No example is at both ends: of fewer than
    2 ``places`` the top has the larger half.
    """
    n = len(ranking.ids)
    top = min(places, (n + 1) // 2)
    bottom = min(places, n - top)
    positions = [("top", p) for p in range(top)] + [("bottom", n - 1 - p) for p in range(bottom)]
    return [
        {
            "end": end,
            "place": position + 1 if end == "top" else n - position,
            "rank": position + 1,
            "score": float(ranking.scores[position]),
            "id": ranking.ids[position],
        }
        for end, position in positions
    ]


def page_data(
    rankings: Mapping[str, Ranking],
    texts: Mapping[str, str],
    budgets: Sequence[float | str],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """What the page shows, ready for JSON: the examples in the order of the first ranking.

    ``rankings`` by selector; ``texts`` by id, unmasked; ``named`` is added as it is. Scores keep
    ``DIGITS`` significant digits. Raises ``UserError`` when two selectors rank other examples.
    """
    ids = next(iter(rankings.values())).ids
    members = set(ids)
    selectors = []
    for name, ranking in rankings.items():
        odd = members.symmetric_difference(ranking.ids)
        if odd:
            raise UserError(
                f"selectors {next(iter(rankings))!r} and {name!r} rank other examples, such as "
                f"{min(odd)!r}",
                do="delete their scores and score again",
            )
        place = {key: position for position, key in enumerate(ranking.ids)}
        positions = [place[key] for key in ids]
        selectors.append(
            {
                "name": name,
                "ranks": [position + 1 for position in positions],
                "scores": [float(f"{ranking.scores[p]:.{DIGITS}g}") for p in positions],
                "again": [] if ranking.again is None else ranking.again[:, positions].tolist(),
            }
        )
    return {
        **named,
        "budgets": [plain(beta) for beta in budgets],
        "selectors": selectors,
        "ids": ids,
        **_texts([texts[key] for key in ids]),
    }


def _texts(texts: Sequence[str]) -> dict[str, Any]:
    """The texts masked, and by the position of each that has them the words that are ``hidden``."""
    shown = [mask(text) for text in texts]
    pairs = enumerate(zip(shown, texts, strict=True))
    return {
        "texts": shown,
        "hidden": {str(i): hidden(*pair) for i, pair in pairs if pair[0] != pair[1]},
    }


def hidden(shown: str, text: str) -> list[list[Any]]:
    """What stands in ``text`` where ``shown``, which is as long, differs from it, and from which
    UTF-16 unit of ``shown`` on, since that is how JavaScript counts.

    >>> hidden("Well, d***!", "Well, damn!")
    [[7, 'amn']]
    """
    found: list[list[Any]] = []
    end = -1
    for place, (star, letter) in enumerate(zip(shown, text, strict=True)):
        if star == letter:
            continue
        if place == end:
            found[-1][1] += letter
        else:
            found.append([len(shown[:place].encode("utf-16-le", "surrogatepass")) // 2, letter])
        end = place + 1
    return found


def verdict_of(calibrated: str | Path) -> str:
    """What the table ``calibrated`` says of the scores that it was made from, with their AUC and
    its interval. Raises ``UserError`` when the file is missing or damaged."""
    told = read_metadata(calibrated)["verdict"]
    seen = f"AUC {told['auc']:.2f} [{told['auc_low']:.2f}, {told['auc_high']:.2f}]"
    return str(told["words"] if seen in told["words"] else f"{told['words']} ({seen})")


def labels_to_look_at(path: str | Path) -> dict[str, Any]:
    """What the page shows of a table ``triage``: its rows, and why there are none.

    Raises ``UserError`` when the file is missing or damaged.
    """
    names = ["domain", "id", "score", "stable", "why", "text"]
    rows = read_table(path, schemas.TRIAGE, names).to_pylist()
    return {"why": read_metadata(path)["details"]["why"], "rows": rows}


def plain(beta: float | str) -> str:
    """A budget as a plain decimal.

    >>> plain(1e-05), plain(0.1), plain("0.70")
    ('0.00001', '0.1', '0.70')
    """
    return format(Decimal(str(beta)), "f")


def page(title: str, data: Mapping[str, Any]) -> str:
    """The HTML of a page that shows ``data`` (of ``page_data``): self-contained, without requests.

    Neither ``title`` nor anything in ``data`` can add markup to it.
    """
    skeleton, style, script = ((PAGE / name).read_text(encoding="utf-8") for name in PAGE_FILES)
    policy = (
        f"default-src 'none'; script-src '{source(script)}'; style-src '{source(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(skeleton).substitute(
        policy=policy,
        title=html.escape(title),
        style=style,
        script=script,
        data=json_in_html(data),
    )


def json_in_html(value: Any) -> str:
    """JSON that can stand in a ``<script>``: with every ``<`` escaped nothing in it ends the
    element or opens a comment.

    >>> json_in_html("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def page_digest() -> str:
    """SHA-256 of ``PAGE_FILES``, which ``PAGE_SHA256`` has to equal."""
    return hashlib.sha256(b"\0".join((PAGE / name).read_bytes() for name in PAGE_FILES)).hexdigest()


def source(text: str) -> str:
    """The source expression by which a Content Security Policy allows an inline element."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
