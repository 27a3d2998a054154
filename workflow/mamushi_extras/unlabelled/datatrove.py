"""A filter of datatrove's pipelines: the documents that a screen lets through."""

from __future__ import annotations

from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter

from mamushi_extras.unlabelled.corpus_screen import CorpusScreen


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
        return self.screen.passing([doc.text for doc in batch])

    def filter(self, doc: Document) -> bool:
        """Do so of one document."""
        return self.filter_batch([doc])[0]
