"""A corpus in which nobody marked the domain: its texts, examples of the domain in another table or
the hits of a blocklist, and texts that are known to be wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config.sources import beside as paths
from mamushi.data import readers
from mamushi.data.conversations import TURNS, Conversations, Spoken
from mamushi.data.duplicates import Duplicates, find_duplicates, key
from mamushi.data.raw import Raw, Rows
from mamushi.data.scripts import units
from mamushi.errors import UserError
from mamushi.io.domains import INFERENCE
from mamushi.io.files import sha256
from mamushi_extras.audit.answers import ANSWERED, NO
from mamushi_extras.unlabelled import terms

EXAMPLE, WANTED = "example", "wanted"
GIVEN = "_given"
"""Column of ``Raw.labels``: what a text is known to be that is not of the corpus or is wanted."""
SCREEN = "_screen"
"""By how much a text is above the lowest one that a screen let pass, by a fit without it."""
KEYS = {"like": EXAMPLE, "unlike": WANTED}
"""Keys of a dataset's ``forget`` that name tables, and what their texts are."""
FEWEST_EXAMPLES = 20
"""Examples below which no list can be judged: with 20 of them, the share of the domain that a list
has is known to 44 points."""
MOST_HIT = 0.5
"""Of the corpus, what a blocklist may hit."""
_KNOWN = 0.5
"""Of the words of an example, what the corpus must know, of at least half of the examples."""
Beside = dict[str, list[tuple[str, Spoken]]]
"""Place and text of each text beside a corpus, by the keys that name its files."""
Margins = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]
Screened = tuple[Mapping[str, int], Margins]
"""How many ``texts`` a corpus has, and how many ``passed`` a screen; and what gives the column
``SCREEN`` of the examples and then of others."""


@dataclass(frozen=True)
class CorpusRows(Raw):
    """A corpus in which nobody marked the domain, with what lies beside it behind its own rows;
    ``forget`` is of examples. ``margins`` give the column ``SCREEN``, where a screen was let on."""

    margins: Margins | None = None

    @property
    def roles(self) -> list[str | None]:
        """Return what each row is known to be, ``EXAMPLE`` or ``WANTED``; None of the corpus."""
        return list(self.labels[GIVEN])

    def copies(self, rows: Rows, texts: Sequence[str], **settings: Any) -> Duplicates:
        """Return the copies: a corpus has texts of the domain, so that of an example is one."""
        return find_duplicates(texts, np.zeros(len(rows), dtype=bool), **settings)

    def joined(self, rows: Rows, roots: Rows) -> Self:
        """Return the rows where a text with a copy among the examples is one, and a text with a
        copy among wanted ones is wanted. An answer that a text is none overrules that it is an
        example. Raises ``UserError`` for a text that is both."""
        forget, roles, labels = self.forget.copy(), list(self.roles), dict(self.labels)
        answers = labels[ANSWERED]
        first = rows[roots]
        forget[first[forget[rows]]] = True
        if SCREEN in labels:
            # A fit that saw a copy of a text has seen the text.
            margins = np.array(labels[SCREEN])
            np.minimum.at(margins, first, margins[rows])
            labels[SCREEN] = margins
        for row, root in zip(rows.tolist(), first.tolist(), strict=True):
            if answers[row] == NO:
                forget[root], roles[root] = False, WANTED
        for row, root in zip(rows.tolist(), first.tolist(), strict=True):
            if roles[row] == WANTED:
                if forget[root]:
                    problem = f"is wanted, and unwanted at {self.places[root]}"
                    do = "take it out of one of them"
                    raise UserError(problem, where=self.places[row], do=do)
                roles[root] = WANTED
        return replace(self, forget=forget, labels={**labels, GIVEN: roles})

    def unlisted(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are not of the corpus."""
        roles = self.roles
        return np.array([roles[row] is not None for row in rows.tolist()], dtype=bool)

    def counts(self, examples: pa.Table) -> dict[str, Any]:
        """Return ``corpus``, the texts of it that are ranked, ``of_corpus``, its rows, and
        ``screened``, how many a screen let pass of how many."""
        ranked = examples.filter(pc.equal(examples["section"], INFERENCE))
        corpus = ranked[f"label_{GIVEN}"].null_count
        counts = {"corpus": corpus, "of_corpus": self.roles.count(None)}
        return counts | {
            name: self.extra_metadata[name] for name in {"screened"} & self.extra_metadata.keys()
        }


def with_examples(
    raw: Raw, settings: Mapping[str, Any], screened: Screened | None = None
) -> CorpusRows:
    """Return the rows of a corpus, or what a screen let through, with the examples behind them, and
    what is wanted. Raises ``UserError`` as ``check_examples``."""
    beside = read_beside(settings)
    counts, margins = screened or ({}, None)
    if not counts:
        check_examples(beside, raw.texts, settings)
    turns = [spoken.turns for several in beside.values() for _, spoken in several]
    labels = {name: [*column, *[None] * len(turns)] for name, column in raw.labels.items()}
    if TURNS in labels:
        labels[TURNS][len(raw.ids) :] = turns
    if None in turns if TURNS in labels else any(turns):
        problem = "what lies beside the corpus is text where that has conversations, or the reverse"
        do = "give conversations, or rank the answers alone (--part assistant)"
        raise UserError(problem, where=next(iter(paths(settings).values())), do=do)
    files = {f"{name} {Path(path).name}": sha256(path) for name, path in paths(settings).items()}
    rows = [
        (name, *place_and_text) for name, several in beside.items() for place_and_text in several
    ]
    nothing = [None] * len(rows)
    ids = [f"{name}:{n + 1}" for name, several in beside.items() for n in range(len(several))]
    roles = [*[None] * len(raw.ids), *(KEYS[name] for name, *_ in rows)]
    return CorpusRows(
        ids=[*raw.ids, *ids],
        texts=[*raw.texts, *(spoken.text for *_, spoken in rows)],
        forget=np.concatenate([raw.forget, [name == "like" for name, *_ in rows]]).astype(bool),
        section=[*raw.section, *nothing],
        stratum=[*raw.stratum, *[""] * len(rows)],
        places=[*raw.places, *(place for _, place, _ in rows)],
        labels={**labels, GIVEN: roles, ANSWERED: [None] * len(roles)},
        group=None if raw.group is None else [*raw.group, *nothing],
        sources={**raw.sources, **files},
        dropped={"under the screen": counts["texts"] - len(raw.ids)} if counts else {},
        extra_metadata={**raw.extra_metadata, **({"screened": dict(counts)} if counts else {})},
        margins=margins,
    )


def marked(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Return the rows with what a screen says of them, and with the hits of a blocklist as
    examples. Raises ``UserError`` for a blocklist that hits nothing or most texts."""
    assert isinstance(raw, CorpusRows)
    if raw.margins is not None:
        rows = np.arange(len(raw.texts))
        examples, unseen = rows[raw.forget], rows[~raw.forget]
        texts = ([raw.texts[row] for row in part.tolist()] for part in (examples, unseen))
        margin = np.zeros(len(rows))
        margin[np.concatenate([examples, unseen])] = raw.margins(*texts)
        raw = replace(raw, labels={**raw.labels, SCREEN: margin})
    if "terms" in settings["forget"]:
        corpus = [i for i, role in enumerate(raw.roles) if role is None]
        raw.forget[corpus] = _hits([raw.texts[i] for i in corpus], settings["forget"]["terms"])
    return raw


def read_beside(settings: Mapping[str, Any]) -> Beside:
    """Return the place and text of each text beside a corpus, by the keys that name its files."""
    forget = settings["forget"]
    column = forget.get("text") or settings["text"]
    part = settings.get("part", "whole")
    return {name: list(_texts(forget[name], column, part)) for name in KEYS if forget.get(name)}


def _texts(path: str, column: str, part: str) -> Iterator[tuple[str, Spoken]]:
    """Yield the place and text of each row of a table that is not empty."""
    conversations = Conversations(column, part, plain=True)
    table = readers.read_file_columns(path, conversations.columns)
    columns = [table.columns[name] for name in conversations.columns]
    for place, *cells in zip(table.places, *columns, strict=True):
        spoken = conversations.read(dict(zip(conversations.columns, cells, strict=True)), place)
        if spoken.text.strip():
            readers.check_text(spoken.text, place)
            yield place, spoken


def check_examples(beside: Beside, corpus: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for a corpus, or a sample of it, without texts; for fewer than
    ``FEWEST_EXAMPLES`` examples, those that are one text, and those in another language."""
    if not any(map(str.strip, corpus)):
        do = "name a table with texts, and their column"
        raise UserError("the corpus has no texts", where=settings["path"], do=do)
    if "like" not in beside:
        return
    examples, where = beside["like"], settings["forget"]["like"]
    distinct = len({key(spoken.text) for _, spoken in examples})
    if len(examples) > 1 and distinct == 1:
        problem = f"its {len(examples):,} texts are one and the same"
        raise UserError(
            problem, where=where, do=f"give at least {FEWEST_EXAMPLES} examples that differ"
        )
    if distinct < FEWEST_EXAMPLES:
        problem = (
            f"has {distinct} examples that differ, and fewer than {FEWEST_EXAMPLES} tell nothing"
        )
        raise UserError(problem, where=where, do="give more texts of the domain")
    words_of = [set(units(spoken.text)) for _, spoken in examples]
    missing = set().union(*words_of)
    for text in corpus:
        if not missing:
            break
        missing.difference_update(units(text))
    shares = [1 - len(words & missing) / len(words) if words else 0.0 for words in words_of]
    if float(np.median(shares)) < _KNOWN:
        problem = (
            f"the corpus knows {np.median(shares):.0%} of the words of an example in the middle: "
            "they share no language, and would be ranked by that alone"
        )
        raise UserError(problem, where=where, do="give examples in the language of the corpus")


def _hits(texts: Sequence[str], path: str) -> NDArray[np.bool_]:
    """Return which texts have a term of a blocklist. Raises ``UserError`` as
    ``terms.read_terms``, and where that are too few or too many to tell anything."""
    has_term = terms.read_terms(path)
    return _checked(np.array([has_term(text) for text in texts]), path)


def _checked(hit: NDArray[np.bool_], path: str) -> NDArray[np.bool_]:
    hits, n = int(hit.sum()), len(hit)
    if hits < FEWEST_EXAMPLES:
        problem = f"hits {hits:,} of {n:,} texts, and fewer than {FEWEST_EXAMPLES} tell nothing"
        raise UserError(problem, where=path, do="add terms, or check the text column")
    if hits > MOST_HIT * n:
        problem = f"hits {hits:,} of {n:,} texts, which leaves no corpus to compare them with"
        raise UserError(problem, where=path, do="take out the terms that most texts have")
    return hit
