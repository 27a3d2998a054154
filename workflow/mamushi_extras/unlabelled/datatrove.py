"""A corpus that several machines read: screened by the tasks of an engine, datatrove, which lets
those texts through that one process does (``screen.screen_texts``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic, read_json, write_json
from mamushi_extras.unlabelled import screen as screens
from mamushi_extras.unlabelled.like import read_beside


@dataclass(frozen=True)
class CorpusScreen:
    """The steps that screen a corpus, in ``folder``, which holds what one hands on to the next:
    ``sample`` and ``score`` of as many tasks as read documents, each followed by one of a single
    task, ``fit`` and ``cut``; then a ``ScreenFilter`` tells what passes. ``like`` is the table of
    examples, with their column; ``most`` texts pass, or below 1 that share of them."""

    folder: str
    like: str
    most: float
    like_text: str = "text"

    @property
    def file(self) -> Path:
        """Return the file of the screen, for ``--screened`` once it says where what passes ends."""
        return Path(self.folder) / "screen.safetensors"

    def read(self) -> screens.Screen:
        """Read the screen."""
        return screens.Screen(**load_file(self.file))

    def sample(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the texts of a task to which the screen may be fitted."""
        texts, rows = screens.draw_sample(document.text for document in documents)
        write_json(Path(self.folder) / f"sample/{rank:05}.json", {"texts": texts, "rows": rows})

    def fit(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen that is fitted to the samples of all tasks."""
        samples = [*map(read_json, sorted(Path(self.folder).glob("sample/*")))]
        forget = {"like": self.like, "text": self.like_text}
        examples = read_beside({"path": self.folder, "forget": forget})["text"].tolist()
        texts = screens.draw_sample(chain(*(sample["texts"] for sample in samples)))[0]
        rows = sum(sample["rows"] for sample in samples)
        _save(self.file, screens.fit_screen(examples, texts, rows)._asdict())

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen = self.read()
        blocks = screen.score_blocks(document.text for document in documents)
        scores = screens.highest(blocks, screen.count(self.most))
        _save(Path(self.folder) / f"scores/{rank:05}.safetensors", scores._asdict())

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the screen, and where the documents end that pass."""
        files = sorted(Path(self.folder).glob("scores/*"))
        blocks = (screens.ScreenScores(**load_file(file)) for file in files)
        _save(self.file, self.read().cut_at(self.most, blocks)._asdict())


def _save(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    with atomic(path) as file:
        save_file(arrays, file)


class ScreenFilter(BaseFilter):  # type: ignore[misc]
    """Drops the documents that do not pass."""

    name = "🐍 Mamushi"

    def __init__(
        self, screen: CorpusScreen, exclusion_writer: Any = None, batch_size: int = 1000
    ) -> None:
        super().__init__(exclusion_writer, batch_size)
        self.screen = screen

    @cached_property
    def opened(self) -> screens.Screen:
        """Return the screen, once its steps are done."""
        return self.screen.read()

    def filter_batch(self, batch: list[Document]) -> list[bool]:
        """Tell which documents pass."""
        scored = self.opened.score_blocks(document.text for document in batch)
        return [bool(passes) for block in scored for passes in self.opened.passing(block)]

    def filter(self, doc: Document) -> bool:
        """Do so of one document."""
        return self.filter_batch([doc])[0]
