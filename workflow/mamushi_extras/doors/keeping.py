"""Which documents of an engine's batch stay: those that a list does not name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError
from mamushi.io.files import sha256

if TYPE_CHECKING:
    from mamushi_curate.matching import RowRemoval


class ListKeeper:
    """Keeps what a removal list of a run does not name: by the id of a document and the digest of
    its text.

    It is called with the ids and the texts of a batch, and so is itself the door to `datasets`:
    ``split.filter(keeper, batched=True, input_columns=["id", "text"])``. It travels to other
    processes as the name of its file, which is read where the first batch comes, and may not have
    changed by then. Raises ``UserError`` for a list that says no digests, whose ids are numbers of
    rows or that cuts parts out of texts, and as ``read_list``.
    """

    reason = "listed"

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file).absolute()
        self.digest = sha256(self.file)
        assert self.opened

    def __getstate__(self) -> dict[str, Any]:
        return {"file": self.file, "digest": self.digest}

    @cached_property
    def opened(self) -> RowRemoval:
        """Return what decides of rows. Raises ``UserError`` as the class."""
        from mamushi_curate.commands._removal_list import read_list

        if sha256(self.file) != self.digest:
            raise UserError("has changed since it was named", where=self.file, do="run again")
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
