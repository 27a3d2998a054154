"""A corpus that several machines read: screened by the tasks of an engine such as datatrove, which
lets those texts through that one process does (``like.read_screened``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic
from mamushi_extras.unlabelled.like import read_examples
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


@dataclass(frozen=True)
class CorpusScreen:
    """The steps that screen a corpus, in ``folder``, which holds what one hands on to the next.

    ``sample`` and ``score`` are steps of as many tasks as read documents, each followed by one of
    a single task, ``fit`` and ``cut``; after them it tells what is ``passing``. ``like`` is the
    table of examples, with their column; ``most`` texts pass, or below 1 that share of them.
    """

    folder: str
    like: str
    most: float
    like_text: str = "text"

    @property
    def file(self) -> Path:
        """Return the file of the screen, for ``--screened`` once it says where what passes ends."""
        return Path(self.folder) / "screen.safetensors"

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
        examples = read_examples({"path": self.folder, "text": "text", "forget": forget})
        rows = sum(int(table.schema.metadata[b"rows"]) for table in tables)
        fit_screen(examples, draw_sample(texts)[0], rows).write(self.file)

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen = read_screen(self.file)
        blocks = screen.score_blocks(document.text for document in documents)
        scores = highest(blocks, passing_count(self.most, screen.rows))
        with atomic(Path(self.folder) / f"scores/{rank:05}.safetensors") as file:
            save_file(scores._asdict(), file)

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen, and where the documents end that pass."""
        screen = read_screen(self.file)
        most = passing_count(self.most, screen.rows)
        files = sorted(Path(self.folder).glob("scores/*"))
        scores = highest((ScreenScores(**load_file(file)) for file in files), most)
        replace(screen, cut=find_cut(scores, most)).write(self.file)

    @cached_property
    def opened(self) -> Screen:
        """Return the screen, once its steps are done."""
        return read_screen(self.file)

    def passing(self, texts: Sequence[str]) -> list[bool]:
        """Tell which documents pass, (n,)."""
        cut = self.opened.cut
        assert cut is not None
        blocks = [cut.passing(keys, of[:, 0]) for keys, of in self.opened.score_blocks(texts)]
        return [bool(passes) for block in blocks for passes in block]
