"""Which rows of a corpus a screen lets through: the same ones in whatever order rows are read.

The corpus is read three times. First for a *sample*, to which the screen is fitted: the texts with
the lowest keys, of which each distinct text has one by its content. Then for the *scores* of all
rows. Then for the rows above the *cut*, the exact score of the last one that passes; of equal
scores those with the lowest keys pass, and copies together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data import readers
from mamushi.data.conversations import Conversations
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
    examples = read_examples(settings)
    windows, draw = settings.get("windows"), np.random.default_rng(0)
    # An example is a passage, which is told from passages.
    passages = [str(draw.choice(windows_of(text, windows))) for text in sample]
    return fit_screen(examples, passages, windows)


def read_examples(settings: Mapping[str, Any]) -> list[str]:
    """Return the examples of a corpus' domain. Raises ``UserError`` as ``like.read_beside``."""
    return [row.spoken.text for row in like.read_beside(settings) if row.key == "like"]


def score_texts(screen: Screen, texts: Iterable[str]) -> Iterator[ScreenScores]:
    """Yield what a screen gives texts, a document that of its best window."""
    rest = iter(texts)
    while block := [*islice(rest, SCREEN_BLOCK)]:
        divided = [windows_of(text, screen.windows) for text in block]
        first = np.cumsum([0, *map(len, divided[:-1])])
        scores = np.maximum.reduceat(screen.scores(chain.from_iterable(divided)), first)
        yield ScreenScores(np.array([*map(text_key, block)], np.int64), scores)


def passing_count(most: float, rows: int) -> int:
    """Return how many of so many rows may pass; ``most`` below 1 is a share."""
    return int(min(rows, most if most >= 1 else np.ceil(most * rows)))


def highest(parts: Iterable[ScreenScores], most: int) -> ScreenScores:
    """Return some rows of the parts, among which are the ``most`` that any fit scores highest."""
    kept, count = list[ScreenScores](), 0
    for part in chain(parts, [None]):
        if part is not None:
            kept.append(part)
            count += len(part.keys)
        if kept and (part is None or count >= 2 * most):
            keys, scores = map(np.concatenate, zip(*kept, strict=True))
            if len(keys) > most:
                rows = (scores >= np.partition(scores, -most, axis=0)[-most]).any(axis=1)
                keys, scores = keys[rows], scores[rows]
            kept, count = [ScreenScores(keys, scores)], len(keys)
    nothing = np.empty(0, np.int64), np.empty((0, 1 + FOLDS), np.float32)
    return kept[0] if kept else ScreenScores(*nothing)


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
    ``UserError`` as ``read_raw``, ``read_screened`` and ``with_screen``."""
    forget = settings["forget"]
    if forget.get("screened"):
        screen, rows, cut = read_screen(Path(forget["screened"]))
        assert cut is not None
        return with_screen(read_raw(settings), settings, screen, cut.lowest, rows)
    if forget.get("screen"):
        return read_screened(settings)
    return like.with_examples(read_raw(settings), settings)


def read_screened(settings: Mapping[str, Any]) -> like.CorpusRows:
    """Read the rows of a corpus that pass a screen, which is fitted to it, with what lies beside
    it. Raises ``UserError`` as ``readers.table_rows``, ``fit_to_sample``, ``raw_of`` and
    ``with_screen``, and for a file that changed between two readings."""
    path, quote = Path(settings["path"]), settings.get("quote") is None
    needed = needed_columns(settings)
    readers.check_columns(path, readers.columns(path, quote=quote), needed)
    files = tabular.find(path)
    spoken = Conversations(settings["text"], settings.get("part", "whole"))
    digests: list[dict[str, str]] = []

    def read_rows(names: list[str]) -> Iterator[TableRow]:
        digests.append({})
        yield from readers.numbered_rows(files, names, digests[-1], quote=quote)

    def read_texts() -> Iterator[str]:
        for _, place, cells in read_rows(spoken.columns):
            yield spoken.read(cells, place).text

    sample, rows = draw_sample(read_texts())
    screen = fit_to_sample(sample, settings)
    most = passing_count(settings["forget"]["screen"], rows)
    seen = list[tuple[NDArray[np.int64], NDArray[np.float32]]]()

    def remembered() -> Iterator[ScreenScores]:
        for part in score_texts(screen, read_texts()):
            seen.append((part.keys, part.scores[:, 0].copy()))
            yield part

    cut = find_cut(highest(remembered(), most), most)
    passing = np.concatenate([cut.passing(*part) for part in seen])
    passes = {*(np.flatnonzero(passing) + 1).tolist()}
    passed = [row for row in read_rows(needed) if row[0] in passes]
    typed = tabular.format_of(files[0]) not in readers.SEPARATORS
    columns = {name: [cells.get(name) for _, _, cells in passed] for name in needed}
    places, numbers = [place for _, place, _ in passed], [number for number, _, _ in passed]
    table = FileTable("", columns, places, typed=typed, numbers=numbers)
    if digests[0] != digests[-1]:
        raise UserError("has changed while it was read", where=path, do="run again")
    return with_screen(raw_of(table, settings, digests[-1]), settings, screen, cut.lowest, rows)


def with_screen(
    raw: Raw,
    settings: Mapping[str, Any],
    screen: Screen,
    lowest: NDArray[np.float64],
    rows: int,
) -> like.CorpusRows:
    """Return the rows that a screen let through of so many ``rows``, with what lies beside them.
    Raises ``UserError`` where few examples pass, and as ``like.with_examples``."""
    examples = read_examples(settings)
    passed = int((screen.margins(lowest, examples) >= 0).sum())
    if passed < like.FEWEST_EXAMPLES:
        problem = f"lets {passed} of {len(examples)} examples through among {len(raw.ids):,} of "
        do = f"let through more; {like.FEWEST_EXAMPLES} have to pass"
        raise UserError(f"{problem}{rows:,} texts", where="screen", do=do)
    counts = {"texts": rows, "passed": len(raw.ids)}
    return like.with_examples(raw, settings, (counts, partial(screen.margins, lowest)))


def read_screen(path: Path) -> tuple[Screen, int, ScreenCut | None]:
    """Return a screen, the number of rows, and where those end that pass, once that is known."""
    from safetensors import safe_open
    from safetensors.numpy import load_file

    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["mamushi"])
    tensors = load_file(path)
    weights = np.zeros((FEATURES, 1 + FOLDS), np.float32)
    weights[tensors["words"]] = tensors["weights"]
    rarity = rarity_of(tensors["rarity"])
    screen = Screen(weights, rarity, tensors["fold"], about["windows"])
    if "score" not in tensors:
        return screen, about["rows"], None
    cut = ScreenCut(tensors["score"][0], tensors["key"][0], tensors["lowest"])
    return screen, about["rows"], cut
