"""A look at the first rows of the tables of one's own, before anything runs: what is wrong there is
wrong. It costs milliseconds, since every dry run and every job pays for it; so nothing heavy is
imported, and of a Parquet file the names of the columns alone are looked for. Of an object in a
bucket is asked whether it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mamushi.artifacts import remote
from mamushi.configuration.checks import datasets_used, models_used
from mamushi.configuration.complete import ConfigError
from mamushi.data import readers
from mamushi.data.rows import needed, rows
from mamushi.errors import UserError

KIND = "table"
"""The loader of tables."""
ROWS = 100
"""That are looked at."""


def check(config: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` with a line for each table of a completed configuration that the stage
    ``examples`` is sure to refuse, for a bad expression, a missing column, or a cell of its first
    ``ROWS`` rows; and for each Parquet file of vectors without its columns."""
    lines = []
    for name in datasets_used(config):
        definition = config["datasets"][name]
        if definition["kind"] == KIND:
            try:
                _look(definition)
            except UserError as error:
                lines.append(f"datasets.{name}: {error}")
    for name in models_used(config):
        given = config["models"][name].get("embeddings")
        if given and given["path"] is not None and given["ids"] is None:
            try:
                readers.read(given["path"], [given["id"], given["vector"]], ROWS)
            except UserError as error:
                lines.append(f"models.{name}.embeddings: {error}")
    if lines:
        raise ConfigError(lines)


def _look(settings: Mapping[str, Any]) -> None:
    columns = needed(settings)
    if settings["path"] is None:
        return
    if remote.is_remote(settings["path"]):
        remote.identity(settings["path"])
    else:
        table = readers.read(settings["path"], columns, ROWS)
        if table.places:
            rows(table, settings)
