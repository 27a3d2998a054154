"""A corpus in which nobody marked the domain: its texts, examples of the domain in another table or
the hits of a blocklist, and texts that are known to be wanted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.config.sources import beside
from mamushi.data import readers
from mamushi.data.duplicates import key
from mamushi.data.raw import Raw
from mamushi.data.rows import NO
from mamushi.data.scripts import pairs, parted
from mamushi.errors import UserError
from mamushi.io.files import sha256
from mamushi_extras.unlabelled import terms
from mamushi_extras.windows.windows import divided

EXAMPLE, WANTED = "example", "wanted"
GIVEN, ANSWERED = "label_given", "label_answered"
"""Columns of the examples table: what a text is known to be that is not of the corpus or is wanted,
and what people said of one of the corpus."""
SCREEN = "label_screen"
"""Column of the examples table: by how much a text is above the lowest one that a screen let pass,
by a fit without it."""
KEYS = {"like": EXAMPLE, "unlike": WANTED}
"""Keys of a dataset's ``forget`` that name tables, and what their texts are."""
FEWEST = 20
"""Examples below which no list can be judged: with 20 of them, the share of the domain that a list
has is known to 44 points."""
MOST_HIT = 0.5
"""Of the corpus, what a blocklist may hit."""
KNOWN = 0.5
"""Of the words of an example, what the corpus must know, of at least half of the examples."""
Given = dict[str, list[tuple[str, str]]]
Margins = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]
Screened = tuple[Mapping[str, int], Margins]
"""How many ``texts`` a corpus has, and how many ``passed`` a screen; and what gives the column
``SCREEN`` of the examples and then of others."""


def with_examples(raw: Raw, settings: Mapping[str, Any], screened: Screened | None = None) -> Raw:
    """Return the rows of a corpus, the windows of its documents, or what a screen let through, with
    the examples behind them, and what is wanted. Raises ``UserError`` as ``check``, and for a
    blocklist that hits nothing or most texts."""
    forget, found = settings["forget"], given(settings)
    counts, margins = screened or ({}, None)
    if not counts:
        check(found, raw.texts, settings)
    files = {f"{name} {Path(path).name}": sha256(path) for name, path in beside(settings).items()}
    rows = [(name, *each) for name, several in found.items() for each in several]
    ids = [f"{name}:{n + 1}" for name, several in found.items() for n in range(len(several))]
    whole = replace(
        raw,
        ids=[*raw.ids, *ids],
        texts=[*raw.texts, *(text for _, _, text in rows)],
        forget=np.concatenate([raw.forget, [name == "like" for name, *_ in rows]]).astype(bool),
        section=[*raw.section, *[None] * len(rows)],
        stratum=[*raw.stratum, *[""] * len(rows)],
        places=[*raw.places, *(place for _, place, _ in rows)],
        labels={name: [*column, *[None] * len(rows)] for name, column in raw.labels.items()},
        group=None if raw.group is None else [*raw.group, *[None] * len(rows)],
        sources={**raw.sources, **files},
        given=[*[None] * len(raw.ids), *(KEYS[name] for name, *_ in rows)],
        dropped={"under the screen": counts["texts"] - len(raw.ids)} if counts else {},
        screened=counts,
    )
    raw = divided(whole, settings.get("windows"))
    if margins is not None:
        raw = replace(raw, margin=_margins(raw, margins))
    if "terms" in forget:
        of = zip(raw.texts, raw.given or (), strict=True)
        corpus = [text for text, given in of if given is None]
        raw.forget[: len(corpus)] = _hits(corpus, forget["terms"])
    return raw


def _margins(raw: Raw, margins: Margins) -> NDArray[np.float64]:
    found, rows = np.zeros(len(raw.texts)), range(len(raw.texts))
    examples, others = ([row for row in rows if raw.forget[row] == of] for of in (True, False))
    texts = ([raw.texts[row] for row in part] for part in (examples, others))
    found[[*examples, *others]] = margins(*texts)
    return found


def known_by_copies(raw: Raw, rows: NDArray[np.int64], roots: NDArray[np.int64]) -> Raw:
    """Return the rows of a corpus that nobody labelled, where a text with a copy among the examples
    is one, and a text with a copy among wanted ones is wanted; ``roots`` are the first texts of the
    clusters of ``rows``. An answer that a text is none overrules that it is an example. Raises
    ``UserError`` for a text that is both."""
    if raw.given is None:
        return raw
    forget, given, margin = raw.forget.copy(), list(raw.given), raw.margin
    first = rows[roots]
    forget[first[forget[rows]]] = True
    if margin is not None:
        # A fit that saw a copy of a text has seen the text.
        margin = margin.copy()
        np.minimum.at(margin, first, margin[rows])
    for row, root in zip(rows.tolist(), first.tolist(), strict=True):
        if raw.answers and raw.answers[row] == NO:
            forget[root], given[root] = False, WANTED
    for row, root in zip(rows.tolist(), first.tolist(), strict=True):
        if given[row] == WANTED:
            if forget[root]:
                what = f"is wanted, and unwanted at {raw.places[root]}"
                do = "take it out of one of them"
                raise UserError(what, where=raw.places[row], do=do)
            given[root] = WANTED
    return replace(raw, forget=forget, given=given, margin=margin)


def given(settings: Mapping[str, Any]) -> Given:
    """Return the place and text of each text beside a corpus, by the keys that name its files."""
    forget = settings["forget"]
    column = forget.get("text") or settings["text"]
    return {name: list(_texts(forget[name], column)) for name in KEYS if forget.get(name)}


def _texts(path: str, column: str) -> Iterator[tuple[str, str]]:
    """Yield the place and text of each row of a table that is not empty."""
    table = readers.read(path, [column])
    for place, text in zip(table.places, table.columns[column], strict=True):
        if text is not None and not isinstance(text, str):
            what = f"column {column!r} is {text!r:.60}, not text"
            raise UserError(what, where=place, do="name the column with the text (forget.text)")
        if text and text.strip():
            readers.check_text(text, place)
            yield place, text


def check(found: Given, corpus: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for a corpus, or a sample of it, without texts; for fewer than ``FEWEST``
    examples, those that are one text, and those in another language."""
    if not any(map(str.strip, corpus)):
        do = "name a table with texts, and their column"
        raise UserError("the corpus has no texts", where=settings["path"], do=do)
    if "like" not in found:
        return
    examples, where = found["like"], settings["forget"]["like"]
    distinct = len({key(text) for _, text in examples})
    if len(examples) > 1 and distinct == 1:
        what = f"its {len(examples):,} texts are one and the same"
        raise UserError(what, where=where, do=f"give at least {FEWEST} examples that differ")
    if distinct < FEWEST:
        what = f"has {distinct} examples that differ, and fewer than {FEWEST} tell nothing"
        raise UserError(what, where=where, do="give more texts of the domain")
    own = [set(units(text)) for _, text in examples]
    missing = set().union(*own)
    for text in corpus:
        if not missing:
            break
        missing.difference_update(units(text))
    shares = [1 - len(words & missing) / len(words) if words else 0.0 for words in own]
    if float(np.median(shares)) < KNOWN:
        what = (
            f"the corpus knows {np.median(shares):.0%} of the words of an example in the middle: "
            "they share no language, and would be ranked by that alone"
        )
        raise UserError(what, where=where, do="give examples in the language of the corpus")


def units(text: str) -> Iterator[str]:
    """Yield the words of a text, of a script without letter cases its pairs of letters: some of
    these are written without spaces."""
    for run in re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text)):
        if run.isascii():
            yield run.lower()
            continue
        for word in [run] if run.lower() == run.upper() else parted(run):
            if word.lower() != word.upper():
                yield word.lower()
            else:
                yield from pairs(word)


def _hits(texts: Sequence[str], path: str) -> NDArray[np.bool_]:
    """Return which texts have a term of a blocklist. Raises ``UserError`` as ``terms.read``, and
    where that are too few or too many to tell anything."""
    has_term = terms.read(path)
    return _checked(np.array([has_term(text) for text in texts]), path)


def _checked(hit: NDArray[np.bool_], path: str) -> NDArray[np.bool_]:
    hits, n = int(hit.sum()), len(hit)
    if hits < FEWEST:
        what = f"hits {hits:,} of {n:,} texts, and fewer than {FEWEST} tell nothing"
        raise UserError(what, where=path, do="add terms, or check the text column")
    if hits > MOST_HIT * n:
        what = f"hits {hits:,} of {n:,} texts, which leaves no corpus to compare them with"
        raise UserError(what, where=path, do="take out the terms that most texts have")
    return hit
