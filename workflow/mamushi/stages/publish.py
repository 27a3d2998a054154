"""The stage that publishes result tables, of the core and of rooms."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config.kinds import Config, Settings, setting
from mamushi.io import paths
from mamushi.registry import find_files, import_file
from mamushi.running.stage import Job, Output
from mamushi.stages._io import parquet

Needs = tuple[list[str], dict[str, Any]]
"""Files, and settings."""


class Published(NamedTuple):
    """Result tables that one job makes, an entry of ``TABLES`` in a module of stages.

    ``needs(config)``, for tables of studies also with the name of one, returns the files that they
    are made of and settings; the function ``tables(root, **settings)`` of a ``module`` finds these
    files by path, and returns what each table is made of by its schema. ``category`` is their part
    of the report, and of the targets.
    """

    category: str
    names: tuple[str, ...]
    module: str
    needs: Callable[..., Needs]


@cache
def all_tables() -> dict[str, Published]:
    """Return the result tables of the core and of rooms by the rules that make them; a room's stand
    in the place of the core's of that rule."""
    files = find_files("mamushi/stages/tables.py") + find_files("mamushi_*/*/stages.py")
    entries = [getattr(import_file(file), "TABLES", {}) for file in files]
    return {rule: made for tables in entries for rule, made in tables.items()}


def settings_of(config: Config, name: str, study: str | None = None) -> dict[str, Any]:
    """Return the settings of tables, by the rule that makes them."""
    return all_tables()[name].needs(config, *filter(None, [study]))[1]


class Publish(Settings):
    """Which tables, and how they are made."""

    name: str
    settings: dict[str, Any] = setting(settings_of)
    rooms: tuple[str, ...] = setting(lambda config, name: (all_tables()[name].module,), default=())


def publish(*, root: Path = paths.RESULTS, out_folder: Output, settings: Publish, job: Job) -> None:
    """Make result tables, all or none of them."""
    tables = import_module(all_tables()[settings.name].module).tables(root, **settings.settings)
    parquet.publish(out_folder, tables.items(), job.origin)
