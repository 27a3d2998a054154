"""A corpus in which nobody marked the domain: its texts, examples of the domain in another table or
the hits of a blocklist, and texts that are known to be wanted."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import regex
from numpy.typing import NDArray
from safetensors.numpy import load_file

from mamushi.data.duplicates import Duplicates, find_duplicates, folded_text
from mamushi.data.raw import Raw, Rows
from mamushi.data.scripts import LETTER, UNSPACED
from mamushi.errors import UserError, located
from mamushi.io.domains import INFERENCE, TURNS
from mamushi.io.files import sha256
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.lines import check_text
from mamushi_curate.tables.readers import read_file_columns
from mamushi_curate.tables.rows import read_raw
from mamushi_extras.audit.adds import ANSWERED, NO

EXAMPLE, WANTED = "example", "wanted"
GIVEN = "_given"
"""Column of ``Raw.labels``: what a text is known to be that is not of the corpus or is wanted."""
SCREEN = "_screen"
"""By how much a text is above the lowest one that a screen let pass, by a fit without it."""
KEYS = {"like": EXAMPLE, "unlike": WANTED}
"""Keys of a dataset's ``forget`` that name tables, and what their texts are."""
FEWEST_EXAMPLES = 20  # With so many, the share of the domain in a list is known to 44 points.
MOST_HIT = 0.5  # Of the corpus, what a blocklist may hit.
LETTERS = rf"[[\w\p{{M}}\p{{N}}]--{UNSPACED}]"
"""What a word is made of where it has an edge."""
HANGUL = regex.compile(r"\p{Hangul}")
UNSEEN = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}]")


@dataclass(frozen=True)
class CorpusRows(Raw):
    """A corpus in which nobody marked the domain, with what lies beside it behind its own rows;
    ``forget`` is of examples."""

    def copies(self, rows: Rows, texts: Sequence[str], **settings: Any) -> Duplicates:
        """Return the copies: a corpus has texts of the domain, so that of an example is one."""
        return find_duplicates(texts, np.zeros(len(rows), dtype=bool), **settings)

    def join_copies(self, rows: Rows, roots: Rows) -> Self:
        """Return the rows where a text with a copy among the examples is one, but a text with a
        copy among wanted ones, or an answer that it or a copy is none, is wanted."""
        forget, labels, first = self.forget.copy(), dict(self.labels), rows[roots]
        roles, answers = (np.array(labels[name], dtype=object) for name in (GIVEN, ANSWERED))
        forget[first[forget[rows]]] = True
        if SCREEN in labels:
            # A fit that saw a copy of a text has seen the text.
            margins = np.array(labels[SCREEN])
            np.minimum.at(margins, first, margins[rows])
            labels[SCREEN] = margins
        wanted = first[(roles[rows] == WANTED) | (answers[rows] == NO)]
        forget[wanted], roles[wanted] = False, WANTED
        return replace(self, forget=forget, labels={**labels, GIVEN: roles.tolist()})

    def unlisted_rows(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are not of the corpus."""
        return np.array([self.labels[GIVEN][row] is not None for row in rows.tolist()], dtype=bool)

    def counts(self, examples: pa.Table) -> dict[str, Any]:
        """Return ``corpus``, the texts of it that are ranked, ``of_corpus``, its rows, and
        ``screened``, how many a screen let pass of how many."""
        ranked = examples.filter(pc.equal(examples["section"], INFERENCE))
        return {
            "corpus": ranked[f"label_{GIVEN}"].null_count,
            "of_corpus": list(self.labels[GIVEN]).count(None),
            **{k: v for k, v in self.extra_metadata.items() if k == "screened"},
        }


def read_corpus_rows(settings: Mapping[str, Any]) -> CorpusRows:
    """Read an unlabelled corpus, or what a screen lets through, with the examples of what is wanted
    behind it. Raises ``UserError`` as ``read_raw`` and ``read_beside``, and if only one is of
    conversations, as the chat template would then tell them apart."""
    beside, raw, forget = read_beside(settings), read_raw(settings), settings["forget"]
    files = {key: forget[key] for key in ("like", "unlike", "terms", "screened") if key in forget}
    screened = {}
    if forget.get("screen") or forget.get("screened"):
        raw, screened[SCREEN] = pass_screen(raw, beside, forget)
    are_turns = beside["turns"].notna()
    if not are_turns.all() if TURNS in raw.labels else are_turns.any():
        problem = "the corpus or what lies beside it is conversations, and the other is not"
        do = "give conversations, or rank the answers alone (--part assistant)"
        raise UserError(problem, where=next(iter(files.values())), do=do)
    nothing, inside = [None] * len(beside), list[str | None]([None] * len(raw.ids))
    columns: dict[str, Any] = {
        **{"ids": beside["id"], "texts": beside["text"], "places": beside["place"]},
        **{"section": nothing, "stratum": [""] * len(beside)},
        **({} if raw.group is None else {"group": nothing}),
    }
    columns = {name: [*getattr(raw, name), *column] for name, column in columns.items()}
    columns["forget"] = np.concatenate([raw.forget, beside["key"] == "like"]).astype(bool)
    columns["labels"] = {
        **{name: [*column, *nothing] for name, column in raw.labels.items()},
        **({TURNS: [*raw.labels[TURNS], *beside["turns"]]} if TURNS in raw.labels else {}),
        **{GIVEN: [*inside, *map(KEYS.get, beside["key"])], ANSWERED: inside + nothing},
        **screened,
    }
    sources = {f"{key} {Path(file).name}": sha256(file) for key, file in files.items()}
    return CorpusRows(**{**vars(raw), **columns, "sources": {**raw.sources, **sources}})


def pass_screen(
    raw: Raw, beside: pd.DataFrame, forget: Mapping[str, Any]
) -> tuple[Raw, NDArray[np.float64]]:
    """Return the rows of a corpus that pass the screen of the settings ``forget``, or did so
    before; and what it says of these and of the texts ``beside``, see ``SCREEN``."""
    from mamushi_extras.unlabelled.screen import Screen, screen_texts

    # Examples come first.
    texts, m = beside["text"].tolist(), int((beside["key"] == "like").sum())
    if forget.get("screened"):
        screen = Screen(**load_file(forget["screened"]))
    else:
        screen, passing = screen_texts(texts[:m], raw.texts, forget["screen"])
        raw = raw.take(passing)
    n, rows = len(raw.ids), int(screen.rows[0])
    margins = screen.margins(texts[:m], [*texts[m:], *raw.texts])
    if (passed := int((margins[:m] >= 0).sum())) < FEWEST_EXAMPLES:
        do = f"let through more; {FEWEST_EXAMPLES} have to pass"
        raise UserError(f"lets {passed} examples through", where="screen", do=do)
    metadata = {**raw.extra_metadata, "screened": {"texts": rows, "passed": n}}
    raw = replace(raw, dropped={"under the screen": rows - n}, extra_metadata=metadata)
    return raw, np.roll(margins, n)


def mark_hits(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Return the rows with the hits of a blocklist, if there is one, as examples. Raises
    ``UserError`` for one that hits too few or too many to tell anything."""
    if path := settings["forget"].get("terms"):
        has_term = read_terms(path)
        corpus = [row for row, role in enumerate(raw.labels[GIVEN]) if role is None]
        raw.forget[corpus] = [has_term(raw.texts[row]) for row in corpus]
        if not FEWEST_EXAMPLES <= (hits := raw.forget.sum()) <= MOST_HIT * len(corpus):
            do = f"give terms that hit {FEWEST_EXAMPLES} texts to {MOST_HIT:.0%} of them"
            raise UserError(f"hits {hits:,} of {len(corpus):,} texts", where=path, do=do)
    return raw


def read_terms(path: str) -> Callable[[str], bool]:
    """Return what says of a text whether it has a term of a file: a term or /regular expression/ a
    line. A term is found in any case, in full-width and other forms of its letters (NFKC), and
    where signs that nobody sees stand in it, as a whole word. Scripts without spaces have no edge
    of a word, and behind a term in Hangul a word may go on. An expression is applied to the text as
    it is."""
    by_edges, patterns = defaultdict[tuple[str, str], set[str]](set), list[re.Pattern[str]]()
    with located(path):
        for line in Path(path).read_text(encoding="utf-8-sig").splitlines():
            # A mark of the byte order stands within a file that was put together of several.
            if expression := re.fullmatch("/(.*)/", line.strip("\ufeff \t")):
                patterns.append(re.compile(expression[1], re.IGNORECASE))
            elif term := fold_text(line):
                left = "" if LETTER.match(term) else rf"(?<!{LETTERS})"
                goes_on = LETTER.match(term[-1]) or HANGUL.match(term[-1])
                right = r"(?!\p{M})" if goes_on else rf"(?!{LETTERS})"
                by_edges[left, right].add(re.escape(term))
    terms = (f"{left}(?:{'|'.join(several)}){right}" for (left, right), several in by_edges.items())
    search = regex.compile("|".join(terms) or "(?!)", regex.V1).search
    return lambda text: bool(search(fold_text(text)) or any(one.search(text) for one in patterns))


def fold_text(text: str) -> str:
    """Return a text after NFKC and folding of case and white space, without signs that nobody
    sees."""
    text = unicodedata.normalize("NFKC", UNSEEN.sub("", unicodedata.normalize("NFKC", text)))
    return " ".join(unicodedata.normalize("NFKC", text.casefold()).split())


def read_beside(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the texts beside a corpus that are not empty, with the ``key`` of ``KEYS`` that names
    their file, and what ``Raw`` has of them. Raises ``UserError`` for fewer than
    ``FEWEST_EXAMPLES`` examples that differ."""
    forget, rows = settings["forget"], []
    column = forget.get("text") or settings["text"]
    conversations = Conversations(column, settings.get("part", "whole"), plain=True)
    for name in filter(forget.get, KEYS):
        table, numbers = read_file_columns(forget[name], conversations.columns), count(1)
        for row, place in enumerate(table.places):
            cells = {column: table.columns[column][row] for column in conversations.columns}
            text, turns = conversations.read(cells, place)
            if text.strip():
                check_text(text, place)
                rows.append((name, f"{name}:{next(numbers)}", place, text, turns))
    beside = pd.DataFrame(rows, columns=["key", "id", "place", "text", "turns"], dtype=object)
    distinct = beside["text"][beside["key"] == "like"].map(folded_text).nunique()
    if "like" in forget and distinct < FEWEST_EXAMPLES:
        problem = f"has {distinct} examples that differ, and fewer than {FEWEST_EXAMPLES} tell"
        do = "give more texts of the domain"
        raise UserError(f"{problem} nothing", where=forget["like"], do=do)
    return beside
