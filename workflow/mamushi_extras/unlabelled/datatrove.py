"""A corpus that several machines read: screened by the tasks of an engine, datatrove, which lets
those texts through that one process does (``screen.screen_texts``)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, compress, tee
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic, read_json, write_json
from mamushi_extras.unlabelled import screen as screens
from mamushi_extras.unlabelled.like import read_beside


@dataclass(frozen=True)
class CorpusScreen:
    """The steps that screen a corpus, in ``folder``, which holds what one hands on to the next:
    ``sample`` and ``score`` of as many tasks as read documents, each followed by one of a single
    task, ``fit`` and ``cut``; then ``keep`` drops the documents that do not pass. ``like`` is the
    table of examples, with their column; ``most`` texts pass, or below 1 that share of them."""

    folder: str
    like: str
    most: float
    like_text: str = "text"

    def read(self) -> screens.Screen:
        """Read the screen, for ``--screened`` once it says where what passes ends."""
        return screens.Screen(**load_file(Path(self.folder) / "screen.safetensors"))

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
        self._save("screen", screens.fit_screen(examples, texts, rows))

    def score(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        """Write the scores of those documents of a task that may pass."""
        screen = self.read()
        blocks = screen.score_blocks(document.text for document in documents)
        self._save(f"scores/{rank:05}", screens.highest(blocks, screen.count(self.most)))

    def cut(self, documents: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Set the screen's threshold by the scores of all tasks, and write the screen again."""
        files = sorted(Path(self.folder).glob("scores/*"))
        blocks = (screens.ScreenScores(**load_file(file)) for file in files)
        self._save("screen", self.read().cut_at(self.most, blocks))

    def keep(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents that pass."""
        screen, (read_ahead, documents) = self.read(), tee(documents)
        blocks = screen.score_blocks(document.text for document in read_ahead)
        yield from compress(documents, chain.from_iterable(map(screen.passing, blocks)))

    def _save(self, name: str, arrays: NamedTuple) -> None:
        with atomic(Path(self.folder) / f"{name}.safetensors") as file:
            save_file(arrays._asdict(), file)
