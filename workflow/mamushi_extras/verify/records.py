"""What manifests and scores say of how they were made, as it was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from mamushi.errors import UserError
from mamushi.registry import Plugin


class Difference(UserError):
    """Something that was made and what is derived again are not the same."""

    def __init__(self, problem: str, where: object) -> None:
        super().__init__(problem, where=where, do="the list is not what its manifest says")


class Provenance(msgspec.Struct):
    """The origin of a manifest."""

    inputs: dict[str, str]
    settings: dict[str, Any]
    embedding: Any = None


class RecordedManifest(msgspec.Struct):
    """The fields of a manifest without which its list cannot be derived again."""

    dataset: str
    model: str
    seed: int
    selector: str
    kind: str
    settings: dict[str, Any]
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)]
    provenance: Provenance
    conditions: dict[str, Any]
    stability: dict[str, Any]


class Settings(msgspec.Struct):
    """The settings of scores without which they cannot be derived again."""

    selector: str
    kind: str
    settings: dict[str, Any]
    seed: int
    code: Any = None
    rooms: tuple[str, ...] = ()


class Origin(msgspec.Struct):
    """The origin of scores."""

    settings: Settings
    inputs: dict[str, Any]
    versions: dict[str, Any] = {}


class Stored(msgspec.Struct):
    """The metadata of scores; ``details`` have what was left to the machine as it was taken."""

    provenance: Origin
    embedded: dict[str, Any] | None = None
    conditions: dict[str, Any] = {}
    details: dict[str, Any] | None = None


@dataclass
class RecordedScores:
    """A file of scores; ``kind`` is the plug-in of its selector."""

    path: Path
    stored: Stored
    table: pa.Table
    kind: Plugin

    @property
    def recorded(self) -> Settings:
        """Return the settings that they were made with."""
        return self.stored.provenance.settings

    @property
    def inputs(self) -> dict[str, Any]:
        """Digests of the files that they were made from."""
        return self.stored.provenance.inputs
