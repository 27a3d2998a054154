"""Which documents of an engine's batch stay: those that a list does not name, or that score low.

A keeper is called with the ids and the texts of a batch, and so is itself the door to `datasets`:
``split.filter(keeper, batched=True, input_columns=["id", "text"])``. It travels to other processes
as the names of its files, which are read where the first batch comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.files import sha256


class _Keeper:
    """``file`` decides, which may not change between processes; ``reason`` is why documents go."""

    reason = "mamushi"

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file).absolute()
        self.digest = sha256(self.file)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "opened"}

    @cached_property
    def opened(self) -> Any:
        """Return what decides. Raises ``UserError`` where the file is another one than at first."""
        if sha256(self.file) != self.digest:
            raise UserError("has changed since it was named", where=self.file, do="run again")
        return self._open()

    def _open(self) -> Any:
        raise NotImplementedError


class ListKeeper(_Keeper):
    """Keeps what a removal list of a run does not name: by the id of a document and the digest of
    its text. Raises ``UserError`` for a list that says no digests, whose ids are numbers of rows or
    that cuts parts out of texts, and as ``read_list``."""

    reason = "listed"

    def __init__(self, file: str | Path) -> None:
        super().__init__(file)
        assert self.opened

    def _open(self) -> Any:
        from mamushi_curate.commands._removal_list import read_list

        listed = read_list(self.file)
        rows = listed.rows or {}
        if not (listed.all and listed.texts):
            problem, do = "has no digests of its texts", "take a list of a run, or mamushi apply"
        elif rows.get("column") is None:
            problem, do = "names numbers of rows", "rank with --id, or take mamushi apply"
        else:
            return listed.removing("id", "text", part=rows.get("part") or "whole")
        raise UserError(problem, where=self.file, do=do)

    def __call__(self, ids: Sequence[Any], texts: Sequence[Any]) -> list[bool]:
        """Tell which documents stay, (n,). Raises ``UserError`` for one whose id is listed with
        another text."""
        pairs = zip(ids, texts, strict=True)
        return [
            self.opened.of({"id": name, "text": text}, f"document {name!r}") is not None
            for name, text in pairs
        ]

    def unseen(self) -> list[str]:
        """Return the listed ids, of texts and copies, that no document had in this process."""
        return sorted({*self.opened.ids} - self.opened.seen_ids)


class ScoreKeeper(_Keeper):
    """Keeps what scores less than ``least`` by a saved scorer, and what says nothing; ``model`` is
    that of a scorer of vectors. Raises ``UserError`` as ``read_scorer``."""

    reason = "score"

    def __init__(self, file: str | Path, least: float, model: str | None = None) -> None:
        super().__init__(file)
        self.least, self.model = least, model
        assert self.opened

    def _open(self) -> Any:
        from mamushi_extras.doors.scorers import read_scorer

        return read_scorer(self.file, self.model)

    def scores(self, texts: Sequence[Any]) -> list[float]:
        """Return the score of each text (n,); NaN of one that says nothing. Null is empty text."""
        return list(self.opened.scores([text or "" for text in texts]).tolist())

    def __call__(self, ids: Sequence[Any], texts: Sequence[Any]) -> list[bool]:
        """Tell which documents stay, (n,)."""
        return [not score >= self.least for score in self.scores(texts)]
