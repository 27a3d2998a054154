"""Which rows of a corpus a screen lets through: the same ones in whatever order rows are read.

The corpus is read three times. First for a *sample*, to which the screen is fitted: the texts with
the lowest keys, of which each distinct text has one by its content. Then for the *scores* of all
rows. Then for the rows above the *cut*, the exact score of the last one that passes; of equal
scores those with the lowest keys pass, and copies together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data import readers
from mamushi.data.conversations import Conversations
from mamushi.data.lines import SEPARATORS, Dialect
from mamushi.data.loaders.table import raw_of, read_raw
from mamushi.data.raw import Raw
from mamushi.data.readers import FileTable, TableRow
from mamushi.data.rows import needed_columns
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.screen import (
    FEATURES,
    FOLDS,
    Screen,
    fit_screen,
    rarity_of,
    windows_of,
)

SCREEN_SAMPLE = 20_000
"""Texts to which a screen is fitted, beside the examples."""
SCREEN_BLOCK = 8192
"""Texts that are scored at a time."""


class ScreenScores(NamedTuple):
    """Keys of the texts of some rows (n,), and what a screen gives them (n, 1 + FOLDS)."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float32]


class ScreenCut(NamedTuple):
    """The last ``score`` and ``key`` that pass, and the ``lowest`` finite score (1 + FOLDS,) by
    each fit among as many; infinite where there is none."""

    score: np.float32
    key: np.int64
    lowest: NDArray[np.float64]

    def passing(self, keys: NDArray[np.int64], first: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Tell which rows pass (n,), by their keys and scores by the fit to all examples."""
        return (first > self.score) | ((first == self.score) & (keys <= self.key))


def text_key(text: str) -> int:
    """Return a number of 63 bits that a text has by its content."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def draw_sample(texts: Iterable[str]) -> tuple[list[str], int]:
    """Return the distinct texts of lowest keys, in their order, of which none is empty, and the
    number of all texts."""
    drawn: dict[int, str] = {}
    limit, rows = 1 << 63, 0
    for text in texts:
        rows += 1
        if text and (key := text_key(text)) <= limit:
            drawn[key] = text
            if len(drawn) >= 2 * SCREEN_SAMPLE:
                drawn = dict(sorted(drawn.items())[:SCREEN_SAMPLE])
                limit = max(drawn)
    return [text for _, text in sorted(drawn.items())[:SCREEN_SAMPLE]], rows


def fit_to_sample(sample: list[str], settings: Mapping[str, Any]) -> Screen:
    """Fit the screen of a corpus. Raises ``UserError`` as ``like.read_beside``."""
    windows, draw = settings.get("windows"), np.random.default_rng(0)
    # An example is a passage, which is told from passages.
    passages = [str(draw.choice(windows_of(text, windows))) for text in sample]
    return fit_screen(like.read_examples(settings), passages, windows)


def score_texts(screen: Screen, texts: Iterable[str]) -> Iterator[ScreenScores]:
    """Yield what a screen gives texts, a document that of its best window."""
    remaining = iter(texts)
    while block := [*islice(remaining, SCREEN_BLOCK)]:
        divided = [windows_of(text, screen.windows) for text in block]
        first = np.cumsum([0, *map(len, divided[:-1])])
        scores = np.maximum.reduceat(screen.scores(chain.from_iterable(divided)), first)
        yield ScreenScores(np.array([*map(text_key, block)], np.int64), scores)


def passing_count(most: float, rows: int) -> int:
    """Return how many of so many rows may pass; ``most`` below 1 is a share."""
    return int(min(rows, most if most >= 1 else np.ceil(most * rows)))


def highest(blocks: Iterable[ScreenScores], most: int) -> ScreenScores:
    """Return some rows of the blocks, among which are the ``most`` that any fit scores highest."""
    nothing = ScreenScores(np.empty(0, np.int64), np.empty((0, 1 + FOLDS), np.float32))
    rows, count = [nothing], 0
    for block in blocks:
        rows.append(block)
        count += len(block.keys)
        if count >= 2 * most:
            rows = [_highest_rows(rows, most)]
            count = len(rows[0].keys)
    return _highest_rows(rows, most)


def _highest_rows(rows: Sequence[ScreenScores], most: int) -> ScreenScores:
    keys, scores = map(np.concatenate, zip(*rows, strict=True))
    if len(keys) > most:
        is_high = (scores >= np.partition(scores, -most, axis=0)[-most]).any(axis=1)
        keys, scores = keys[is_high], scores[is_high]
    return ScreenScores(keys, scores)


def find_cut(scored: ScreenScores, most: int) -> ScreenCut:
    """Return where the ``most`` rows end that score highest."""
    first = scored.scores[:, 0]
    last = np.lexsort((scored.keys, -first))[:most][-1]
    most = min(most, len(first))
    best = np.partition(scored.scores, -most, axis=0)[-most:]
    lowest = np.where(np.isfinite(best), best, np.inf).min(axis=0).astype(np.float64)
    return ScreenCut(first[last], scored.keys[last], lowest)


def read_corpus_rows(settings: Mapping[str, Any]) -> like.CorpusRows:
    """Read a corpus, or what a screen lets through of it, with what lies beside it. Raises
    ``UserError`` as ``read_raw``, ``read_screened`` and ``like.with_examples``, and where few
    examples pass."""
    forget = settings["forget"]
    if not (forget.get("screened") or forget.get("screen")):
        return like.with_examples(read_raw(settings), settings)
    if forget.get("screened"):
        raw, (screen, rows, cut) = read_raw(settings), read_screen(Path(forget["screened"]))
    else:
        raw, screen, rows, cut = read_screened(settings)
    assert cut is not None
    margins = partial(screen.margins, cut.lowest)
    passed = int((margins(like.read_examples(settings)) >= 0).sum())
    if passed < like.FEWEST_EXAMPLES:
        problem = f"lets {passed} examples through among {len(raw.ids):,} of {rows:,} texts"
        do = f"let through more; {like.FEWEST_EXAMPLES} have to pass"
        raise UserError(problem, where="screen", do=do)
    return like.with_examples(raw, settings, ({"texts": rows, "passed": len(raw.ids)}, margins))


def read_screened(settings: Mapping[str, Any]) -> tuple[Raw, Screen, int, ScreenCut]:
    """Return the rows of a corpus that pass a screen, which is fitted to it, the screen, the number
    of all rows, and where those end that pass. Raises ``UserError`` as ``readers.table_rows``,
    ``fit_to_sample`` and ``raw_of``, and for a file that changed between two readings."""
    path, dialect = Path(settings["path"]), Dialect.of(settings)
    needed = needed_columns(settings)
    readers.check_header(path, needed, dialect)
    files = tabular.find(path)
    spoken = Conversations(settings["text"], settings.get("part", "whole"))
    digests: list[dict[str, str]] = []

    def read_rows(names: list[str]) -> Iterator[TableRow]:
        digests.append({})
        yield from readers.numbered_rows(files, names, digests[-1], dialect)

    def read_texts() -> Iterator[str]:
        return (spoken.read(cells, place).text for _, place, cells in read_rows(spoken.columns))

    sample, rows = draw_sample(read_texts())
    screen = fit_to_sample(sample, settings)
    most = passing_count(settings["forget"]["screen"], rows)
    seen = list[tuple[NDArray[np.int64], NDArray[np.float32]]]()

    def remembered() -> Iterator[ScreenScores]:
        for block in score_texts(screen, read_texts()):
            seen.append((block.keys, block.scores[:, 0].copy()))
            yield block

    cut = find_cut(highest(remembered(), most), most)
    passing = np.concatenate([cut.passing(*block) for block in seen])
    passed = [row for row in read_rows(needed) if passing[row[0] - 1]]
    if digests[0] != digests[-1]:
        raise UserError("has changed while it was read", where=path, do="run again")
    numbers, places, cells = ([*column] for column in zip(*passed, strict=True))
    columns = {name: [row.get(name) for row in cells] for name in needed}
    typed = tabular.format_of(files[0]) not in SEPARATORS
    table = FileTable("", columns, places, typed=typed, numbers=numbers)
    return raw_of(table, settings, digests[-1]), screen, rows, cut


def read_screen(path: Path) -> tuple[Screen, int, ScreenCut | None]:
    """Return a screen, the number of rows, and where those end that pass, once that is known."""
    from safetensors import safe_open
    from safetensors.numpy import load_file

    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["mamushi"])
    stored = load_file(path)
    weights = np.zeros((FEATURES, 1 + FOLDS), np.float32)
    weights[stored["words"]] = stored["weights"]
    screen = Screen(weights, rarity_of(stored["rarity"]), stored["fold"], about["windows"])
    is_cut = "score" in stored
    cut = ScreenCut(stored["score"][0], stored["key"][0], stored["lowest"]) if is_cut else None
    return screen, about["rows"], cut
