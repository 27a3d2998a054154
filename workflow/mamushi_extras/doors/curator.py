"""The door to NeMo Curator: a stage of its pipelines."""

from __future__ import annotations

from typing import Any

from nemo_curator.stages.base import ProcessingStage
from nemo_curator.tasks import DocumentBatch

from mamushi_extras.doors.keeping import ListKeeper, ScoreKeeper


class KeeperStage(ProcessingStage[DocumentBatch, DocumentBatch]):  # type: ignore[misc]
    """Drops the documents that a keeper does not keep, by their columns ``id`` and ``text``. A
    batch of which nothing stays is empty, as behind the engine's own filters."""

    name = "mamushi"

    def __init__(
        self, keeper: ListKeeper | ScoreKeeper, id_field: str = "id", text_field: str = "text"
    ) -> None:
        self.keeper, self.fields = keeper, [id_field, text_field]

    def inputs(self) -> tuple[list[str], list[str]]:
        """Return what a batch has to have."""
        return ["data"], self.fields

    def outputs(self) -> tuple[list[str], list[str]]:
        """Return the same: no column is new."""
        return ["data"], self.fields

    def setup(self, worker_metadata: Any = None) -> None:
        """Read the keeper's file, once for a worker."""
        assert self.keeper.opened

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Return the documents that stay. Raises ``UserError`` for one whose id is listed with
        another text."""
        frame = task.to_pandas()
        kept = frame[self.keeper(*(frame[name].tolist() for name in self.fields))]
        return DocumentBatch(
            dataset_name=task.dataset_name,
            data=kept,
            _metadata=task._metadata,
            _stage_perf=task._stage_perf,
        )
