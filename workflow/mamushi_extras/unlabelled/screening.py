"""Which rows of a corpus a screen lets through: the same ones however many jobs read its files.

The corpus is read three times. First for a *sample*, to which the screen is fitted: the texts with
the lowest keys, of which each distinct text has one by its content. Then for the *scores* of all
rows. Then for the rows above the *cut*, the exact score of the last one that passes; of equal
scores those with the lowest keys pass, and copies together. A *shard* is some of the corpus' files.
Between two readings each leaves a table of at most ``SCREEN_SAMPLE`` texts, or of 52 bytes a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data import readers
from mamushi.data.conversations import Conversations
from mamushi.data.loaders.table import raw_of
from mamushi.data.raw import Raw
from mamushi.data.readers import FileTable, TableRow
from mamushi.data.rows import needed_columns
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.screen import FOLDS, Screen, fit_screen, windows_of

SCREEN_SAMPLE = 20_000
"""Texts to which a screen is fitted, beside the examples."""
SCREEN_BLOCK = 8192
"""Texts that are scored at a time."""
_LOWEST_HALF = 0x007F
"""Upper 16 bits of minus infinity, of which no other number has any, in the order of numbers."""


@dataclass
class ScreenSample:
    """The distinct texts of lowest ``keys`` (m,), in their order, of a number of ``rows``."""

    keys: NDArray[np.int64]
    texts: list[str]
    rows: int
    names: list[str] = field(default_factory=list)
    """Columns of the files."""
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files by their names."""


class ScreenScores(NamedTuple):
    """Keys of the texts of all rows (n,), and what a screen gives them (n, 1 + FOLDS)."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float32]


class ScreenCut(NamedTuple):
    """The last ``score`` and ``key`` that pass, and the ``lowest`` finite score (1 + FOLDS,) by
    each fit among as many; infinite where there is none."""

    score: np.float32
    key: np.int64
    lowest: NDArray[np.float64]

    def passing(self, scored: ScreenScores) -> NDArray[np.bool_]:
        """Tell which rows pass, (n,)."""
        first = scored.scores[:, 0]
        return (first > self.score) | ((first == self.score) & (scored.keys <= self.key))


class CorpusShard:
    """Some ``files`` of a corpus, in the order of its rows, and how its texts are read."""

    def __init__(self, files: Sequence[Path], settings: Mapping[str, Any]) -> None:
        self.files, self.settings = files, settings
        part = settings.get("part", "whole")
        self.conversations = Conversations(settings["text"], part)
        self.names: dict[str, None] = {}
        self.digests: dict[str, str] = {}

    def rows(self, needed: Sequence[str]) -> Iterator[TableRow]:
        """Yield the number of each row, from 1, its place and its cells. Raises ``UserError`` as
        ``readers.table_rows``."""
        quote = self.settings.get("quote") is None
        self.digests.clear()
        for row in readers.numbered_rows(self.files, needed, self.digests, quote=quote):
            self.names.update(dict.fromkeys(row[2]))
            yield row

    def sample(self) -> ScreenSample:
        """Draw a sample, from which no row has a text that is not text. Raises ``UserError`` as
        ``rows`` and ``Conversations.read``."""
        texts: dict[int, str] = {}
        rows, limit = 0, np.iinfo(np.int64).max
        for number, place, cells in self.rows(self.conversations.columns):
            rows = number
            text = self.conversations.read(cells, place).text
            if (key := text_key(text)) <= limit and text:
                texts[key] = text
                if len(texts) >= 2 * SCREEN_SAMPLE:
                    texts = dict(sorted(texts.items())[:SCREEN_SAMPLE])
                    limit = max(texts)
        lowest = sorted(texts.items())[:SCREEN_SAMPLE]
        keys = np.array([key for key, _ in lowest], np.int64)
        return ScreenSample(
            keys, [text for _, text in lowest], rows, [*self.names], {**self.digests}
        )

    def score(self, screen: Screen) -> Iterator[ScreenScores]:
        """Yield what a screen gives the rows, a document that of its best window."""
        rows = self.rows(self.conversations.columns)
        while block := list(islice(rows, SCREEN_BLOCK)):
            texts = [self.conversations.read(cells, place).text for _, place, cells in block]
            divided = [windows_of(text, screen.windows) for text in texts]
            first = np.cumsum([0, *map(len, divided[:-1])])
            scores = np.maximum.reduceat(screen.scores(chain.from_iterable(divided)), first)
            yield ScreenScores(np.array([*map(text_key, texts)], np.int64), scores)

    def take(self, passing: NDArray[np.bool_], before: int = 0) -> Raw:
        """Return the rows that pass, by their numbers in a corpus that has so many rows ``before``
        these. Raises ``UserError`` as ``rows`` and ``raw_of``."""
        typed = tabular.format_of(self.files[0]) not in readers.SEPARATORS
        needed = needed_columns(self.settings)
        columns: dict[str, list[Any]] = {name: [] for name in needed}
        places, numbers = list[str](), list[int]()
        passes = {*(np.flatnonzero(passing) + 1).tolist()}
        for number, place, cells in self.rows(needed):
            if number in passes:
                places.append(place)
                numbers.append(before + number)
                for name, column in columns.items():
                    column.append(cells.get(name))
        table = FileTable("", columns, places, typed=typed, numbers=numbers)
        return raw_of(table, self.settings, {**self.digests})


def text_key(text: str) -> int:
    """Return a number of 63 bits that a text has by its content."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def join_samples(samples: Iterable[ScreenSample]) -> ScreenSample:
    """Return the sample of a corpus from those of its shards."""
    texts: dict[int, str] = {}
    names: dict[str, None] = {}
    digests: dict[str, str] = {}
    rows = 0
    for sample in samples:
        texts.update(zip(sample.keys.tolist(), sample.texts, strict=True))
        texts = dict(sorted(texts.items())[:SCREEN_SAMPLE])
        names.update(dict.fromkeys(sample.names))
        digests.update(sample.digests)
        rows += sample.rows
    return ScreenSample(np.array([*texts], np.int64), [*texts.values()], rows, [*names], digests)


def fit_to_sample(sample: ScreenSample, settings: Mapping[str, Any]) -> Screen:
    """Fit the screen of a corpus. Raises ``UserError`` as
    ``like.check_examples``, and for a corpus without rows or the column of its texts."""
    path = Path(settings["path"])
    if not sample.rows:
        raise UserError("no rows", where=path, do="give a file with data")
    columnar = tabular.format_of(tabular.find(path)[0]) in readers.COLUMNAR
    # Files of columns were asked for one by one.
    needed = [] if columnar else needed_columns(settings)
    readers.check_columns(path, sample.names, needed)
    beside = like.read_beside(settings)
    like.check_examples(beside, sample.texts, settings)
    examples = [spoken.text for _, spoken in beside["like"]]
    windows, draw = settings.get("windows"), np.random.default_rng(0)
    # An example is a passage, which is told from passages.
    passages = [str(draw.choice(windows_of(text, windows))) for text in sample.texts]
    return fit_screen(examples, passages, windows)


def passing_count(settings: Mapping[str, Any], rows: int) -> int:
    """Return how many of so many rows may pass; below 1 the setting is a share."""
    most = settings["forget"]["screen"]
    return int(min(rows, most if most >= 1 else np.ceil(most * rows)))


def find_cut(parts: Callable[[], Iterable[ScreenScores]], most: int) -> ScreenCut:
    """Return where the ``most`` rows that score highest end, from the scores in ``parts``, which
    are gone through three times and never held at once: an exact quantile by the histograms of two
    halves of a number's bits. As many rows as tie there are held by their keys."""
    columns = range(1 + FOLDS)
    upper = np.zeros((1 + FOLDS, 1 << 16), np.int64)
    for part in parts():
        for column in columns:
            upper[column] += np.bincount(_bits(part.scores[:, column]) >> 16, minlength=1 << 16)
    rows = int(upper[0].sum())
    # Of what is finite; and last of all rows by the first fit, as what has no words may pass, too.
    finite = [*(upper.sum(axis=1) - upper[:, : _LOWEST_HALF + 1].sum(axis=1)).tolist(), rows]
    counts = np.concatenate([upper, upper[:1]])
    ranks = np.minimum(finite, most)
    halves = [_place(count, rank) for count, rank in zip(counts, ranks.tolist(), strict=True)]
    lower = np.zeros((2 + FOLDS, 1 << 16), np.int64)
    for part in parts():
        for row, column in enumerate([*columns, 0]):
            bits = _bits(part.scores[:, column])
            inside = bits[bits >> 16 == halves[row][0]] & 0xFFFF
            lower[row] += np.bincount(inside, minlength=1 << 16)
    scores = [
        _number((half << 16) | _place(lower[row], rank)[0])
        for row, (half, rank) in enumerate(halves)
    ]
    lowest = np.array([score if n else np.inf for score, n in zip(scores, finite, strict=True)])
    score, above, ties = scores[-1], 0, [np.empty(0, np.int64)]
    for part in parts():
        above += int((part.scores[:, 0] > score).sum())
        ties.append(part.keys[part.scores[:, 0] == score])
    keys = np.concatenate(ties)
    left = int(ranks[-1]) - above
    return ScreenCut(score, np.partition(keys, left - 1)[left - 1], lowest[:-1])


def _bits(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return numbers whose order is that of the scores, of 32 bits; 0 has no sign."""
    bits = (scores + np.float32(0)).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.int64)


def _number(bits: int) -> np.float32:
    """Return the score of such a number."""
    word = bits & 0x7FFFFFFF if bits >> 31 else ~bits & 0xFFFFFFFF
    return np.float32(np.array(word, np.uint32).view(np.float32))


def _place(counts: NDArray[np.int64], rank: int) -> tuple[int, int]:
    """Return in which bin the number of a rank from the highest is, and its rank there."""
    above = np.cumsum(counts[::-1])
    place = int(np.searchsorted(above, max(rank, 1)))
    before = int(above[place - 1]) if place else 0
    return len(counts) - 1 - place, rank - before


def join_passed(
    raws: Sequence[Raw],
    sample: ScreenSample,
    screen: Screen,
    cut: ScreenCut,
    settings: Mapping[str, Any],
) -> like.CorpusRows:
    """Return the rows of all shards that passed, with what lies beside the corpus. Raises
    ``UserError`` for a file that changed between two readings, where few examples pass, and as
    ``like.with_examples``."""
    filled = [raw for raw in raws if len(raw.ids)]

    def column(name: str) -> list[Any]:
        return [*chain.from_iterable(getattr(raw, name) for raw in filled)]

    digests = dict(chain.from_iterable(raw.sources.items() for raw in raws))
    if digests != sample.digests:
        raise UserError("has changed while it was read", where=settings["path"], do="run again")
    joined = Raw(
        ids=column("ids"),
        texts=column("texts"),
        section=column("section"),
        stratum=column("stratum"),
        places=column("places"),
        forget=np.concatenate([raw.forget for raw in filled]),
        labels={
            name: [*chain.from_iterable(raw.labels[name] for raw in filled)]
            for name in filled[0].labels
        },
        group=None if settings.get("group") is None else column("group"),
        sources=digests,
        extra_metadata=filled[0].extra_metadata,
    )
    examples = [spoken.text for _, spoken in like.read_beside(settings)["like"]]
    passed = int((screen.margins(cut.lowest, examples) >= 0).sum())
    if passed < like.FEWEST_EXAMPLES:
        most = passing_count(settings, sample.rows)
        problem = (
            f"lets {passed} of {len(examples)} examples through among {most:,} of "
            f"{sample.rows:,} texts"
        )
        do = f"let through more; {like.FEWEST_EXAMPLES} have to pass"
        raise UserError(problem, where="screen", do=do)
    counts = {"texts": sample.rows, "passed": len(joined.ids)}
    return like.with_examples(joined, settings, (counts, partial(screen.margins, cut.lowest)))
