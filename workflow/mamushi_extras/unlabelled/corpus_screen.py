"""A corpus that several machines read: screened by the tasks of an engine such as datatrove, which
lets those texts through that one process does (``screening``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic
from mamushi_extras.unlabelled.screen import Screen
from mamushi_extras.unlabelled.screening import (
    ScreenCut,
    ScreenScores,
    draw_sample,
    find_cut,
    fit_to_sample,
    highest,
    passing_count,
    read_screen,
    score_texts,
)


@dataclass(frozen=True)
class CorpusScreen:
    """The steps that screen a corpus, in ``folder``, which holds what one hands on to the next.

    ``sample`` and ``score`` are steps of as many tasks as read documents, each followed by one of
    a single task, ``fit`` and ``cut``; after them this is a keeper of what passes. ``like`` is the
    table of examples, with their column; ``most`` texts pass, or below 1 that share of them.
    Documents are divided by ``windows``, if that is not None.
    """

    folder: str
    like: str
    most: float
    like_text: str = "text"
    windows: Mapping[str, Any] | None = None
    reason: ClassVar[str] = "screen"

    @property
    def file(self) -> Path:
        """Return the file of the screen, for ``--screened``."""
        return Path(self.folder) / "screen.safetensors"

    @property
    def fitted(self) -> Path:
        """Return the file of the screen before it is known where the documents end that pass."""
        return Path(self.folder) / "fitted.safetensors"

    def sample(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the texts of a task to which the screen may be fitted."""
        texts, rows = draw_sample(document.text for document in documents)
        table = pa.table({"text": pa.array(texts, pa.string())}, metadata={"rows": str(rows)})
        with atomic(Path(self.folder) / f"sample/{rank:05}.parquet") as file:
            pq.write_table(table, file)

    def fit(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen that is fitted to the samples of all tasks. Raises ``UserError`` for
        examples that tell nothing."""
        tables = [pq.read_table(file) for file in sorted(Path(self.folder).glob("sample/*"))]
        texts = chain.from_iterable(table["text"].to_pylist() for table in tables)
        forget = {"like": self.like, "text": self.like_text}
        settings = {"path": self.folder, "text": "text", "forget": forget, "windows": self.windows}
        screen = fit_to_sample(draw_sample(texts)[0], settings)
        write_screen(self.fitted, screen, sum(int(t.schema.metadata[b"rows"]) for t in tables))

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen, rows, _ = read_screen(self.fitted)
        blocks = score_texts(screen, (document.text for document in documents))
        scores = highest(blocks, passing_count(self.most, rows))
        with atomic(Path(self.folder) / f"scores/{rank:05}.safetensors") as file:
            save_file(scores._asdict(), file)

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen, and where the documents end that pass."""
        screen, rows, _ = read_screen(self.fitted)
        files = sorted(Path(self.folder).glob("scores/*"))
        scores, most = (ScreenScores(**load_file(f)) for f in files), passing_count(self.most, rows)
        write_screen(self.file, screen, rows, find_cut(highest(scores, most), most))

    def __call__(self, ids: Sequence[Any], texts: Sequence[str]) -> list[bool]:
        """Tell which documents pass, (n,)."""
        screen, cut = _opened(self.file, self.file.stat().st_mtime_ns)
        scored = (cut.passing(keys, of[:, 0]) for keys, of in score_texts(screen, texts))
        return [stays for passing in scored for stays in passing.tolist()]


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int) -> tuple[Screen, ScreenCut]:
    screen, _, cut = read_screen(path)
    assert cut is not None
    return screen, cut


def write_screen(path: Path, screen: Screen, rows: int, cut: ScreenCut | None = None) -> None:
    """Write a screen of so many rows: the words that it weighs, and how rare words are."""
    words = np.flatnonzero(screen.weights.any(axis=1))
    tensors = {"words": words, "weights": screen.weights[words], "rarity": screen.rarity.idf_}
    tensors |= {"fold": screen.fold, **(cut._asdict() if cut else {})}
    about = {"mamushi": json.dumps({"rows": rows, "windows": screen.windows})}
    with atomic(path) as file:
        arrays = {name: np.atleast_1d(np.ascontiguousarray(t)) for name, t in tensors.items()}
        save_file(arrays, file, about)
