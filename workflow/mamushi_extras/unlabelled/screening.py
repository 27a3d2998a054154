"""Read a corpus that nobody labelled: all of it, or what a ``screen`` lets through.

A corpus is read three times to be screened: for the sample, to which the screen is fitted, for the
scores of all rows, and for the rows that pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.lines import SEPARATORS, Dialect
from mamushi_curate.tables.loaders.table import read_raw
from mamushi_curate.tables.readers import FileTable, TableRow
from mamushi_curate.tables.rows import needed_columns, raw_of
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.screen import (
    Screen,
    ScreenScores,
    draw_sample,
    find_cut,
    fit_screen,
    highest,
    passing_count,
    read_screen,
)


def read_corpus_rows(settings: Mapping[str, Any]) -> like.CorpusRows:
    """Read a corpus, or what a screen lets through of it, with what lies beside it. Raises
    ``UserError`` as ``read_raw``, ``read_screened`` and ``like.with_examples``, and where few
    examples pass."""
    forget = settings["forget"]
    if forget.get("screened"):
        raw, screen = read_raw(settings), read_screen(Path(forget["screened"]))
    elif forget.get("screen"):
        raw, screen = read_screened(settings)
    else:
        return like.with_examples(read_raw(settings), settings)
    passed = int((screen.margins(like.read_examples(settings)) >= 0).sum())
    if passed < like.FEWEST_EXAMPLES:
        problem = f"lets {passed} examples through among {len(raw.ids):,} of {screen.rows:,} texts"
        do = f"let through more; {like.FEWEST_EXAMPLES} have to pass"
        raise UserError(problem, where="screen", do=do)
    counts = {"texts": screen.rows, "passed": len(raw.ids)}
    return like.with_examples(raw, settings, (counts, screen.margins))


def read_screened(settings: Mapping[str, Any]) -> tuple[Raw, Screen]:
    """Return the rows of a corpus that pass a screen, which is fitted to it, and the screen. Raises
    ``UserError`` as ``readers.table_rows``, ``like.read_beside`` and ``raw_of``, and for a file
    that changed between two readings."""
    path, dialect = Path(settings["path"]), Dialect.of(settings)
    needed = needed_columns(settings)
    files = tabular.find(path)
    spoken = Conversations(settings["text"], settings.get("part", "whole"))
    digests: list[dict[str, str]] = []

    def read_rows(names: list[str]) -> Iterator[TableRow]:
        digests.append({})
        yield from readers.numbered_rows(files, names, digests[-1], dialect)

    def read_texts() -> Iterator[str]:
        return (spoken.read(cells, place).text for _, place, cells in read_rows(needed))

    screen = fit_screen(like.read_examples(settings), *draw_sample(read_texts()))
    most = passing_count(settings["forget"]["screen"], screen.rows)
    seen = list[tuple[NDArray[np.int64], NDArray[np.float32]]]()

    def remembered() -> Iterator[ScreenScores]:
        for block in screen.score_blocks(read_texts()):
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
    return raw_of(table, settings, digests[-1]), replace(screen, cut=cut)
