"""Texts of the datasets."""

import sys
from pathlib import Path
from typing import Any

from mamushi.config.kinds import NO_PATH, Config, Settings, setting
from mamushi.config.sources import files, is_unlabelled
from mamushi.errors import UserError, located
from mamushi.io.digests import content_digests, versions
from mamushi.io.files import sha256, write_json
from mamushi.registry import plugin, plugin_settings, reading_modules
from mamushi.running.stage import Job, Output
from mamushi.stages._io import parquet, schemas


def loader_settings(config: Config, dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset's loader."""
    definition = config["datasets"][dataset]
    settings = plugin_settings("dataset", definition)
    if is_unlabelled(definition):
        # What is known of the examples changes nothing about how they are read.
        settings["forget"] = {k: v for k, v in settings["forget"].items() if k != "fair"}
    return {**settings, "windows": definition.get("windows")}


class ExamplesSettings(Settings):
    """``loader`` and ``kind`` are of the dataset's loader; ``inputs`` are the digests of its raw
    files."""

    PLUGIN = ("dataset", "kind")
    dataset: str
    kind: str = setting("datasets.{dataset}.kind")
    loader: dict[str, Any] = setting(loader_settings)
    sections: dict[str, float] = setting("datasets.{dataset}.sections")
    limit: dict[str, int | None] = setting("datasets.{dataset}.limit")
    data: dict[str, Any] = setting("data")
    drop_duplicates: bool = setting("datasets.{dataset}.drop_duplicates")
    inputs: dict[str, str] = setting(
        lambda config, dataset: content_digests(files(config["datasets"][dataset]))
    )
    rooms: tuple[str, ...] = setting(
        lambda config, dataset: reading_modules(config["datasets"][dataset]), default=()
    )


def examples(
    *,
    cache: Path,
    examples: Output,
    duplicates: Output,
    card: Output,
    settings: ExamplesSettings,
    job: Job,
) -> None:
    """Clean a dataset's raw files and split them into sections; drop duplicates and cross-posts.
    ``cache`` is a folder for downloads. Raises ``UserError``, with the dataset's name."""
    from mamushi.data.examples import build_examples

    loader = plugin("dataset", settings.kind)
    if not loader.downloads and None in map(settings.loader.get, loader.files):
        raise UserError(NO_PATH, where=f"datasets.{settings.dataset}")
    with located(f"dataset {settings.dataset}"):
        raw = loader.code.load(settings.loader, cache)
        how = (settings.sections, settings.limit, settings.data)
        table, copies, counts = build_examples(raw, *how, drop_duplicates=settings.drop_duplicates)
    # Else the digests would be of what nobody ranked.
    now = content_digests(files({"kind": settings.kind, **settings.loader}))
    for name, digest in settings.inputs.items():
        if now.get(name, digest) != digest:
            raise UserError("has changed since this run began", where=name, do="run again")
    for name, n in counts["sections"].items():
        texts = f"{n['forget']:,} forget, {n['retain']:,} retain"
        print(f"{settings.dataset}: section {name}: {texts}", file=sys.stderr)
    about = dict(raw.extra_metadata)
    parquet.write_table(examples, schemas.EXAMPLES, table, metadata=about)
    # So that a removal list can tell that it joins what belongs together, and what its ids are.
    digest = sha256(examples)
    origin = {"examples": digest, "rows": _rows_of(settings) | about}
    parquet.write_table(duplicates, schemas.DUPLICATES, copies, metadata=origin)
    made = {"dataset": settings.dataset, "settings": job.origin["settings"], "examples": digest}
    made |= {"inputs": dict(raw.sources), "versions": versions(), "counts": counts}
    write_json(card, made)


def _rows_of(settings: ExamplesSettings) -> dict[str, Any]:
    """Return what the ids of a dataset are: of the loader ``table`` the ``column``, null for the
    numbers of rows from 1, and that with the ``text``. What another loader reads has its ids in a
    column ``id``, if anywhere, and other texts than are ranked."""
    loader = settings.loader
    if settings.kind != "table":
        return {"kind": settings.kind, "column": "id", "text": None}
    dialect = {name: loader[name] for name in ("quote", "separator") if loader.get(name)}
    return {"kind": "table", "column": loader["id"], "text": loader["text"], **dialect}
