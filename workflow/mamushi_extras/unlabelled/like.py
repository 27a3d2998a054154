"""A corpus in which nobody marked the domain: its texts, examples of the domain in another table or
the hits of a blocklist, and texts that are known to be wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.config.sources import beside as paths
from mamushi.data.duplicates import Duplicates, find_duplicates, key
from mamushi.data.raw import Raw, Rows
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.io.domains import INFERENCE, TURNS
from mamushi.io.files import sha256
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import Conversations, Spoken
from mamushi_curate.tables.lines import SEPARATORS, Dialect, check_text
from mamushi_curate.tables.loaders.table import read_raw
from mamushi_curate.tables.readers import FileTable, TableRow
from mamushi_curate.tables.rows import needed_columns, raw_of
from mamushi_extras.audit.answers import ANSWERED, NO
from mamushi_extras.unlabelled.terms import read_terms

if TYPE_CHECKING:
    from mamushi_extras.unlabelled.screen import Screen, ScreenScores

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


class Beside(NamedTuple):
    """A text beside a corpus: the key of ``KEYS`` that names its file, its id, and its place."""

    key: str
    id: str
    place: str
    spoken: Spoken


@dataclass(frozen=True)
class CorpusRows(Raw):
    """A corpus in which nobody marked the domain, with what lies beside it behind its own rows;
    ``forget`` is of examples. ``screen`` is what let the corpus on, if any."""

    screen: Screen | None = None

    def copies(self, rows: Rows, texts: Sequence[str], **settings: Any) -> Duplicates:
        """Return the copies: a corpus has texts of the domain, so that of an example is one."""
        return find_duplicates(texts, np.zeros(len(rows), dtype=bool), **settings)

    def joined(self, rows: Rows, roots: Rows) -> Self:
        """Return the rows where a text with a copy among the examples is one, and a text with a
        copy among wanted ones is wanted. An answer that a text is none overrules that it is an
        example. Raises ``UserError`` for a text that is both."""
        forget, labels, first = self.forget.copy(), dict(self.labels), rows[roots]
        roles, answers = (np.array(labels[name], dtype=object) for name in (GIVEN, ANSWERED))
        forget[first[forget[rows]]] = True
        if SCREEN in labels:
            # A fit that saw a copy of a text has seen the text.
            margins = np.array(labels[SCREEN])
            np.minimum.at(margins, first, margins[rows])
            labels[SCREEN] = margins
        refused = first[answers[rows] == NO]
        forget[refused], roles[refused] = False, WANTED
        wanted = roles[rows] == WANTED
        for row, root in zip(rows[wanted].tolist(), first[wanted].tolist(), strict=True):
            if forget[root]:
                problem = f"is wanted, and unwanted at {self.places[root]}"
                do = "take it out of one of them"
                raise UserError(problem, where=self.places[row], do=do)
        roles[first[wanted]] = WANTED
        return replace(self, forget=forget, labels={**labels, GIVEN: roles.tolist()})

    def unlisted(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are not of the corpus."""
        return np.array([self.labels[GIVEN][row] is not None for row in rows.tolist()], dtype=bool)

    def counts(self, examples: pa.Table) -> dict[str, Any]:
        """Return ``corpus``, the texts of it that are ranked, ``of_corpus``, its rows, and
        ``screened``, how many a screen let pass of how many."""
        ranked = examples.filter(pc.equal(examples["section"], INFERENCE))
        corpus, screened = ranked[f"label_{GIVEN}"].null_count, self.extra_metadata.get("screened")
        counts = {"corpus": corpus, "of_corpus": list(self.labels[GIVEN]).count(None)}
        return {**counts, "screened": screened} if screened else counts


def read_corpus_rows(settings: Mapping[str, Any]) -> CorpusRows:
    """Read a corpus, or what a screen lets through, with the examples behind it, and what is
    wanted. Raises ``UserError`` as ``read_raw``, ``read_screened`` and ``read_beside``, where few
    examples pass, and where one of them is conversations and the other is not: else the template
    would tell them apart."""
    from mamushi_extras.unlabelled.screen import read_screen

    forget, rows, files = settings["forget"], read_beside(settings), paths(settings)
    examples, screen = [row.spoken.text for row in rows if row.key == "like"], None
    if forget.get("screen"):
        raw, screen = read_screened(settings, examples)
    else:
        raw = read_raw(settings)
    if forget.get("screened"):
        screen = read_screen(Path(forget["screened"]))
    if screen and (passed := int((screen.margins(examples) >= 0).sum())) < FEWEST_EXAMPLES:
        problem = f"lets {passed} examples through among {len(raw.ids):,} of {screen.rows:,} texts"
        do = f"let through more; {FEWEST_EXAMPLES} have to pass"
        raise UserError(problem, where="screen", do=do)
    nothing = [None] * len(rows)
    labels = {name: [*column, *nothing] for name, column in raw.labels.items()}
    turns = [row.spoken.turns for row in rows]
    if (None in turns) if TURNS in labels else any(turns):
        problem = "what lies beside the corpus is text where that has conversations, or the reverse"
        do = "give conversations, or rank the answers alone (--part assistant)"
        raise UserError(problem, where=next(iter(files.values())), do=do)
    if TURNS in labels:
        labels[TURNS][len(raw.ids) :] = turns
    labels[GIVEN] = [*[None] * len(raw.ids), *(KEYS[row.key] for row in rows)]
    labels[ANSWERED] = [None] * len(labels[GIVEN])
    metadata, dropped = dict(raw.extra_metadata), {}
    if screen:
        metadata["screened"] = {"texts": screen.rows, "passed": len(raw.ids)}
        dropped["under the screen"] = screen.rows - len(raw.ids)
    return CorpusRows(
        ids=[*raw.ids, *(row.id for row in rows)],
        texts=[*raw.texts, *(row.spoken.text for row in rows)],
        forget=np.concatenate([raw.forget, [row.key == "like" for row in rows]]).astype(bool),
        section=[*raw.section, *nothing],
        stratum=[*raw.stratum, *[""] * len(rows)],
        places=[*raw.places, *(row.place for row in rows)],
        labels=labels,
        group=None if raw.group is None else [*raw.group, *nothing],
        sources={**raw.sources, **{f"{key} {Path(f).name}": sha256(f) for key, f in files.items()}},
        dropped=dropped,
        extra_metadata=metadata,
        screen=screen,
    )


def mark_texts(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Return the rows with what a screen says of them, and with the hits of a blocklist as
    examples. Raises ``UserError`` for a blocklist that hits too few or too many to tell anything.
    """
    assert isinstance(raw, CorpusRows)
    if raw.screen is not None:
        rows = np.argsort(~raw.forget, kind="stable")
        texts, count = [raw.texts[row] for row in rows.tolist()], int(raw.forget.sum())
        margin = np.zeros(len(rows))
        margin[rows] = raw.screen.margins(texts[:count], texts[count:])
        raw = replace(raw, labels={**raw.labels, SCREEN: margin})
    if path := settings["forget"].get("terms"):
        has_term = read_terms(path)
        corpus = [row for row, role in enumerate(raw.labels[GIVEN]) if role is None]
        raw.forget[corpus] = [has_term(raw.texts[row]) for row in corpus]
        if not FEWEST_EXAMPLES <= (hits := raw.forget.sum()) <= MOST_HIT * len(corpus):
            problem = f"hits {hits:,} of {len(corpus):,} texts, which tells nothing"
            do = f"give terms that hit {FEWEST_EXAMPLES} texts to {MOST_HIT:.0%} of them"
            raise UserError(problem, where=path, do=do)
    return raw


def read_beside(settings: Mapping[str, Any]) -> list[Beside]:
    """Return the texts beside a corpus that are not empty. Raises ``UserError`` for fewer than
    ``FEWEST_EXAMPLES`` examples that differ."""
    forget, rows = settings["forget"], list[Beside]()
    conversations = Conversations(
        forget.get("text") or settings["text"], settings.get("part", "whole"), plain=True
    )
    for name in filter(forget.get, KEYS):
        table, number = readers.read_file_columns(forget[name], conversations.columns), 0
        for row, place in enumerate(table.places):
            cells = {column: table.columns[column][row] for column in conversations.columns}
            spoken = conversations.read(cells, place)
            if spoken.text.strip():
                check_text(spoken.text, place)
                number += 1
                rows.append(Beside(name, f"{name}:{number}", place, spoken))
    distinct = len({key(row.spoken.text) for row in rows if row.key == "like"})
    if "like" in forget and distinct < FEWEST_EXAMPLES:
        problem = f"has {distinct} examples that differ, and fewer than {FEWEST_EXAMPLES} tell"
        do = "give more texts of the domain"
        raise UserError(f"{problem} nothing", where=forget["like"], do=do)
    return rows


def read_examples(settings: Mapping[str, Any]) -> list[str]:
    """Return the examples beside a corpus. Raises ``UserError`` as ``read_beside``."""
    return [row.spoken.text for row in read_beside(settings) if row.key == "like"]


def read_screened(settings: Mapping[str, Any], examples: Sequence[str]) -> tuple[Raw, Screen]:
    """Return the rows of a corpus that pass a screen, which is fitted to it, and the screen. It is
    read three times: for the sample, the scores, and the rows that pass. Raises ``UserError`` as
    ``readers.table_rows`` and ``raw_of``, and for a file that changed between two readings."""
    from mamushi_extras.unlabelled import screen as screens

    path, dialect = Path(settings["path"]), Dialect.of(settings)
    needed = needed_columns(settings)
    spoken = Conversations(settings["text"], settings.get("part", "whole"))
    digests: list[dict[str, str]] = []

    def read_rows() -> Iterator[TableRow]:
        digests.append({})
        yield from readers.table_rows(path, needed, dialect, digests=digests[-1])

    def read_texts() -> Iterator[str]:
        return (spoken.read(cells, place).text for place, cells in read_rows())

    screen = screens.fit_screen(examples, *screens.draw_sample(read_texts()))
    most = screens.passing_count(settings["forget"]["screen"], screen.rows)
    seen = list[tuple[NDArray[np.int64], NDArray[np.float32]]]()

    def remembered() -> Iterator[ScreenScores]:
        for block in screen.score_blocks(read_texts()):
            seen.append((block.keys, block.scores[:, 0].copy()))
            yield block

    cut = screens.find_cut(screens.highest(remembered(), most), most)
    passing = np.concatenate([cut.passing(*block) for block in seen])
    numbered = enumerate(read_rows(), 1)
    passed = [(number, *row) for number, row in numbered if passing[number - 1]]
    if digests[0] != digests[-1]:
        raise UserError("has changed while it was read", where=path, do="run again")
    numbers, places, cells = ([*column] for column in zip(*passed, strict=True))
    columns = {name: [row.get(name) for row in cells] for name in needed}
    typed = tabular.format_of(tabular.find(path)[0]) not in SEPARATORS
    table = FileTable("", columns, places, typed=typed, numbers=numbers)
    return raw_of(table, settings, digests[-1]), replace(screen, cut=cut)
