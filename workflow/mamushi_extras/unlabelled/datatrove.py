"""A corpus that several machines read: screened by the tasks of an engine, datatrove, which lets
those texts through that one process does (``screen.screen_texts``)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter
from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic
from mamushi_extras.unlabelled import screen as screens
from mamushi_extras.unlabelled.like import read_beside


@dataclass(frozen=True)
class CorpusScreen:
    """The steps that screen a corpus, in ``folder``, which holds what one hands on to the next.

    ``sample`` and ``score`` are steps of as many tasks as read documents, each followed by one of
    a single task, ``fit`` and ``cut``; then a ``ScreenFilter`` tells what passes. ``like`` is the
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

    @cached_property
    def opened(self) -> screens.Screen:
        """Return the screen, once its steps are done."""
        return screens.read_screen(self.file)

    def sample(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the texts of a task to which the screen may be fitted."""
        texts, rows = screens.draw_sample(document.text for document in documents)
        table = pa.table({"text": pa.array(texts, pa.string())}, metadata={"rows": str(rows)})
        with atomic(Path(self.folder) / f"sample/{rank:05}.parquet") as file:
            pq.write_table(table, file)

    def fit(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen that is fitted to the samples of all tasks. Raises ``UserError`` for
        examples that tell nothing."""
        tables = [pq.read_table(file) for file in sorted(Path(self.folder).glob("sample/*"))]
        texts = chain.from_iterable(table["text"].to_pylist() for table in tables)
        forget = {"like": self.like, "text": self.like_text}
        examples = [row.text for row in read_beside({"path": self.folder, "forget": forget})]
        rows = sum(int(table.schema.metadata[b"rows"]) for table in tables)
        screens.fit_screen(examples, screens.draw_sample(texts)[0], rows).write(self.file)

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen = screens.read_screen(self.file)
        blocks = screen.score_blocks(document.text for document in documents)
        scores = screens.highest(blocks, screens.passing_count(self.most, screen.rows))
        with atomic(Path(self.folder) / f"scores/{rank:05}.safetensors") as file:
            save_file(scores._asdict(), file)

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen, and where the documents end that pass."""
        screen = screens.read_screen(self.file)
        most = screens.passing_count(self.most, screen.rows)
        files = sorted(Path(self.folder).glob("scores/*"))
        scores = screens.highest((screens.ScreenScores(**load_file(f)) for f in files), most)
        replace(screen, cut=screens.find_cut(scores, most)).write(self.file)


class ScreenFilter(BaseFilter):  # type: ignore[misc]
    """Drops the documents that do not pass."""

    name = "🐍 Mamushi"

    def __init__(
        self, screen: CorpusScreen, exclusion_writer: Any = None, batch_size: int = 1000
    ) -> None:
        super().__init__(exclusion_writer, batch_size)
        self.screen = screen

    def filter_batch(self, batch: list[Document]) -> list[bool]:
        """Tell which documents pass."""
        screen = self.screen.opened
        assert screen.cut is not None
        scored = screen.score_blocks(document.text for document in batch)
        passing = [screen.cut.passing(keys, scores[:, 0]) for keys, scores in scored]
        return [bool(passes) for block in passing for passes in block]

    def filter(self, doc: Document) -> bool:
        """Do so of one document."""
        return self.filter_batch([doc])[0]
