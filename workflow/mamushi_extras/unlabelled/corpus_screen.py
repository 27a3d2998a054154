"""A corpus that several machines read: screened by the tasks of an engine such as datatrove, which
lets those texts through that one process does (``screening``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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

    def sample(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the texts of a task to which the screen may be fitted."""
        texts, rows = draw_sample(document.text for document in documents)
        table = pa.table({"text": pa.array(texts, pa.string())}, metadata={"rows": str(rows)})
        with atomic(Path(self.folder) / f"sample/{rank:05}.parquet") as part:
            pq.write_table(table, part)

    def fit(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen that is fitted to the samples of all tasks. Raises ``UserError`` for
        examples that tell nothing."""
        files = sorted(Path(self.folder).glob("sample/*.parquet"))
        texts = chain.from_iterable(pq.read_table(file)["text"].to_pylist() for file in files)
        forget = {"like": self.like, "text": self.like_text}
        settings = {"path": self.folder, "text": "text", "forget": forget, "windows": self.windows}
        screen = fit_to_sample(draw_sample(texts)[0], settings)
        rows = sum(int(pq.read_schema(file).metadata[b"rows"]) for file in files)
        write_screen(Path(self.folder) / "fitted.safetensors", screen, rows)

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen, rows, _ = read_screen(Path(self.folder) / "fitted.safetensors")
        parts = score_texts(screen, (document.text for document in documents))
        scores = highest(parts, passing_count(self.most, rows))
        with atomic(Path(self.folder) / f"scores/{rank:05}.safetensors") as part:
            save_file(scores._asdict(), part)

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write ``screen.safetensors``: the screen, and where the documents end that pass."""
        screen, rows, _ = read_screen(Path(self.folder) / "fitted.safetensors")
        files = sorted(Path(self.folder).glob("scores/*.safetensors"))
        scores, most = (ScreenScores(**load_file(f)) for f in files), passing_count(self.most, rows)
        write_screen(self.file, screen, rows, find_cut(highest(scores, most), most))

    @property
    def file(self) -> Path:
        """Return the file of the screen, for ``--screened``."""
        return Path(self.folder) / "screen.safetensors"

    @cached_property
    def _opened(self) -> tuple[Screen, int, ScreenCut | None]:
        return read_screen(self.file)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_opened"}

    def __call__(self, ids: Sequence[Any], texts: Sequence[str]) -> list[bool]:
        """Tell which documents pass, (n,)."""
        screen, _, cut = self._opened
        assert cut is not None
        parts = score_texts(screen, texts)
        return [stays for keys, of in parts for stays in cut.passing(keys, of[:, 0]).tolist()]


def write_screen(path: Path, screen: Screen, rows: int, cut: ScreenCut | None = None) -> None:
    """Write a screen of so many rows: the words that it weighs, and how rare words are."""
    words = np.flatnonzero(screen.weights.any(axis=1))
    tensors = {"words": words, "weights": screen.weights[words], "rarity": screen.rarity.idf_}
    tensors["fold"] = screen.fold
    if cut is not None:
        tensors |= {"score": np.array([cut.score]), "key": np.array([cut.key])}
        tensors["lowest"] = cut.lowest
    about = {"mamushi": json.dumps({"rows": rows, "windows": screen.windows})}
    with atomic(path) as part:
        save_file({name: np.ascontiguousarray(each) for name, each in tensors.items()}, part, about)
