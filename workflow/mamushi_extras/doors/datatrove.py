"""The door to datatrove: a filter of its pipelines."""

from __future__ import annotations

from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter

from mamushi_extras.doors.keeping import ListKeeper
from mamushi_extras.unlabelled.corpus_screen import CorpusScreen


class KeeperFilter(BaseFilter):  # type: ignore[misc]
    """Drops the documents that a keeper does not keep. ``id`` of a document is that of the table
    that was ranked: name its column in the reader's ``id_key``."""

    name = "🐍 Mamushi"

    def __init__(
        self,
        keeper: ListKeeper | CorpusScreen,
        exclusion_writer: Any = None,
        batch_size: int = 1000,
    ) -> None:
        super().__init__(exclusion_writer, batch_size)
        self.keeper = keeper

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Tell which documents stay, and of the others why they go. Raises ``UserError`` for a
        document whose id is listed with another text."""
        stays = self.keeper([doc.id for doc in batch], [doc.text for doc in batch])
        return [stay or (False, self.keeper.reason) for stay in stays]

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Do so of one document."""
        return self.filter_batch([doc])[0]
