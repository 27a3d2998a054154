"""Show the ranking of a forget set: its two ends in a table, and a page to browse all of it.

The page is one HTML file with the data in it, which loads nothing. Texts come in as JSON in which
no ``<`` is left, and reach the screen as text nodes alone. Of more than ``MOST`` texts it has those
that a person may want to look at (``positions_here``).
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.evaluation.masking import mask
from mamushi.evidence.stability import rankings
from mamushi.io import digests, paths, schemas
from mamushi.io.tables import read_groups, read_metadata, read_table
from mamushi.selection.refits import of_table
from mamushi.selection.removals import count

PAGE = Path(__file__).parent / "page"
PAGE_SHA256 = "b3e8a9944c0d74ad8e05848212619189bd33abbff4ddde97faedc53ef8bfdcd3"
"""Of ``head.html`` and ``page.html``, ``.css``, ``.js``: so the digest of the code follows them."""

ENDS = 10
EXCERPT = 300
FIRST, AROUND = 5, 2
"""Texts that go first, and on either side of the end of a list, where few are shown."""
DIGITS = 6
"""Significant digits of a score on the page."""
MOST = 20_000
"""Texts on the page: some 10 MB, which a browser opens and searches at once."""


@dataclass(frozen=True)
class Ranking:
    """A selector's ranking of n1 forget examples, first to go first: ``ids`` and ``scores`` (n1,).
    ``again`` (R, n1) are their ranks in the rankings made again, ``verdict`` what it is worth, in
    words, and ``compared`` whether it is there for comparison alone."""

    ids: list[str]
    scores: NDArray[np.float64]
    again: NDArray[np.int64] | None = None
    verdict: str = ""
    compared: bool = False


def ranking_at(root: Path, names: Mapping[str, str | int]) -> Path:
    """Return where the ranking of a selector lies: that of a corpus, or of forget texts."""
    corpus = paths.under(root, paths.POSTERIOR, **names)
    return corpus if corpus.is_file() else paths.under(root, paths.SCORES, **names)


def is_earlier(root: Path, names: Mapping[str, str | int], inputs: Mapping[str, Any]) -> bool:
    """Return whether a list with these digests of its ``inputs`` is of an earlier ranking than the
    one of its selector that is there. Budgets that nobody asks for again are not made again.
    Raises ``UserError`` for a damaged ranking."""
    ranking, was = ranking_at(root, names), inputs.get("posterior", inputs.get("scores"))
    if was is None or not ranking.is_file() or digests.of(ranking) == was:
        return False
    # Of one that is damaged nothing follows for the list: it is said by reading it.
    read_metadata(ranking)
    return True


def read_ranking(path: str | Path, refits: str | Path | None = None, **known: Any) -> Ranking:
    """Read the ranking in a table ``scores``, with those in its table ``refits`` and what else is
    ``known`` of it. Raises ``UserError`` for a missing or damaged file."""
    table = read_table(path, schemas.SCORES, ["id", "score", "rank"])
    table = table.filter(table["rank"].is_valid()).sort_by("rank")
    scores = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    ids = table["id"].to_pylist()
    if refits is None:
        return Ranking(ids, scores, **known)
    made_again = of_table(read_table(refits, schemas.REFITS))
    of, ranks = rankings(read_table(path, schemas.SCORES), made_again)
    place = {name: position for position, name in enumerate(of)}
    return Ranking(ids, scores, ranks[1:, [place[name] for name in ids]], **known)


def texts_of(examples: str | Path, ids: Sequence[str]) -> list[str]:
    """Read the texts of ``ids``, in their order, as they are.

    Raises ``UserError`` for an id that the table ``examples`` lacks.
    """
    wanted = pa.array(ids, pa.string())
    found: dict[str, str] = {}
    for group in read_groups(examples, schemas.EXAMPLES, ["id", "text"]):
        part = group.filter(pc.is_in(group["id"], value_set=wanted))
        found |= zip(part["id"].to_pylist(), part["text"].to_pylist(), strict=True)
    if missing := [name for name in ids if name not in found]:
        what = f"has no example {missing[0]!r}, which is ranked"
        raise UserError(what, where=examples, do="delete the scores and score again")
    return [found[name] for name in ids]


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return ``text`` masked, white space folded, and cut to ``length`` characters.

    It is masked before it is cut, because a piece of a word may not be known for what it is.
    """
    folded = " ".join(mask(text).split())
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def glimpse(
    removed: int, total: int, first: int = FIRST, around: int = AROUND
) -> tuple[list[int], list[int]]:
    """Return positions of the texts that go ``first``, and of those ``around`` the end of a list of
    ``removed`` of them that are not among the first.

    >>> glimpse(10, 20, 3, 2)
    ([0, 1, 2], [8, 9, 10, 11])
    """
    top = [*range(min(first, total))]
    return top, [p for p in range(removed - around, removed + around) if len(top) <= p < total]


def ends(ranking: Ranking, places: int = ENDS) -> list[dict[str, Any]]:
    """Return the first and the last ``places`` of a ranking: ``end, place, rank, score, id``. No
    example is at both ends; place 1 of the bottom is the last rank."""
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
    texts: Callable[[Sequence[str]], Sequence[str]],
    budgets: Sequence[float | str],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what the page shows, ready for JSON: the examples in the first ranking's order.

    ``texts`` gives those of some ids, unmasked; ``named`` is added as it is. Raises ``UserError``
    when two selectors rank other examples.
    """
    everywhere = _places(rankings)
    here = positions_here(everywhere, budgets, MOST)
    first = next(iter(rankings.values()))
    ids = [first.ids[position] for position in here]
    given = texts(ids)
    selectors = []
    for (name, ranking), places in zip(rankings.items(), everywhere, strict=True):
        positions = places[here].tolist()
        selectors.append(
            {
                "name": name,
                "verdict": ranking.verdict,
                "compared": ranking.compared,
                "ranks": [position + 1 for position in positions],
                "scores": [float(f"{ranking.scores[p]:.{DIGITS}g}") for p in positions],
                "again": [] if ranking.again is None else ranking.again[:, positions].tolist(),
            }
        )
    return {
        **named,
        "budgets": [plain(beta) for beta in budgets],
        "selectors": selectors,
        "total": len(first.ids),
        **shown(ids, given),
    }


def shown(ids: Sequence[str], given: Sequence[str]) -> dict[str, Any]:
    """Return texts as a page has them: masked, and ``hidden`` has by position what is."""
    masked = [mask(text) for text in given]
    return {
        "ids": ids,
        "texts": masked,
        "hidden": {
            str(i): hidden(*pair)
            for i, pair in enumerate(zip(masked, given, strict=True))
            if pair[0] != pair[1]
        },
    }


def _places(rankings: Mapping[str, Ranking]) -> NDArray[np.int64]:
    """Return where each selector ranks the examples, from 0: (selectors, n1), in the first's
    order."""
    name, first = next(iter(rankings.items()))
    ids = pa.array(first.ids, pa.string())
    found = []
    for other, ranking in rankings.items():
        place = pc.index_in(ids, value_set=pa.array(ranking.ids, pa.string()))
        if place.null_count or len(ranking.ids) != len(ids):
            odd = min(set(first.ids).symmetric_difference(ranking.ids))
            raise UserError(
                f"selectors {name!r} and {other!r} rank other examples, such as {odd!r}",
                do="delete their scores and score again",
            )
        found.append(place.to_numpy().astype(np.int64))
    return np.stack(found)


def positions_here(
    places: NDArray[np.int64], budgets: Sequence[float | str], most: int
) -> NDArray[np.int64]:
    """Choose which of n1 examples are on the page, ascending, by ``places`` (selectors, n1) from 0.

    All of at most ``most``. Of more, half are both ends of every selector's ranking and those
    nearest to the cut of every budget; the others are drawn evenly from the first ranking.
    """
    n1 = places.shape[1]
    if n1 <= most:
        return np.arange(n1)
    cuts = [0, n1, *(count(beta, n1) for beta in budgets)]
    each = most // 2 // (len(places) * 2 * len(cuts))
    near = np.zeros(n1, dtype=np.bool_)
    for place in places:
        for cut in cuts:
            near |= (place >= cut - each) & (place < cut + each)
    edges = np.linspace(0, n1, most - int(near.sum()) + 1).astype(np.int64)
    drawn = np.random.default_rng(n1).integers(edges[:-1], edges[1:])
    near[np.argsort(places[0])[drawn]] = True
    return np.flatnonzero(near)


def hidden(shown: str, text: str) -> list[list[Any]]:
    """Return what stands in ``text`` where ``shown``, which is as long, differs from it, and from
    which UTF-16 unit of ``shown`` on, since that is how JavaScript counts.

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


def plain(beta: float | str) -> str:
    """Return a budget as a plain decimal.

    >>> plain(1e-05), plain(0.1), plain("0.70")
    ('0.00001', '0.1', '0.70')
    """
    return format(Decimal(str(beta)), "f")


def page(title: str, data: Mapping[str, Any]) -> str:
    """Return the HTML of a page that shows ``data`` (of ``page_data``): self-contained, without
    requests. Neither ``title`` nor anything in ``data`` can add markup to it."""
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    return render("page", title=title, script=script, data=json_in_html(data))


def json_in_html(value: Any) -> str:
    """Return JSON that can stand in a ``<script>``: with every ``<`` escaped nothing in it ends the
    element or opens a comment.

    >>> json_in_html("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def render(name: str, *, after: str = "", **values: Any) -> str:
    """Fill in the template ``name`` of the folder ``page``, with the style sheet beside it, below
    that of the page ``after``. Its filter ``source`` gives what allows an inline element in a
    Content Security Policy."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader(PAGE),
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
    sheets = [f"{each}.css" for each in (after, name) if each]
    style = "".join((PAGE / each).read_text(encoding="utf-8") for each in sheets)
    return env.get_template(f"{name}.html").render(style=style, **values)
