"""Texts of the datasets, and vectors that another program made of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config import sources
from mamushi.config.models import Columns
from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running import stage as declared
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Config, Settings, code_with, setting


def loader_settings(config: Config, dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset's loader."""
    definition = config["datasets"][dataset]
    found = {key: definition[key] for key in plugin("dataset", definition["kind"]).settings}
    found["windows"] = definition.get("windows")
    # Null in these is what was made before there were the keys.
    later = ("group", "forget", "answers", "windows", "quote")
    return {key: value for key, value in found.items() if key not in later or value is not None}


class Examples(Settings):
    """``loader`` and ``kind`` are of the dataset's loader."""

    dataset: str
    kind: str = setting("datasets.{dataset}.kind")
    loader: dict[str, Any] = setting(loader_settings)
    sections: dict[str, float] = setting("datasets.{dataset}.sections")
    limit: dict[str, int | None] = setting("datasets.{dataset}.limit")
    data: dict[str, Any] = setting("data")
    drop_duplicates: bool = setting("datasets.{dataset}.drop_duplicates", default=True)
    planted: dict[str, Any] | None = setting("datasets.{dataset}.planted", default=None)
    inputs: dict[str, str] = setting(
        lambda config, dataset: sources.contents(sources.files(config["datasets"][dataset])),
        default_factory=dict,
    )
    code: str = setting(code_with("dataset"), default="")


class ExamplesFiles(declared.Files):
    examples: Path = writes("examples.parquet to write")
    duplicates: Path = writes("duplicates.parquet to write")
    card: Path = writes("card.json to write")
    cache: Path = option("folder for downloads")


def examples(files: ExamplesFiles, settings: Examples, job: Job) -> None:
    """Clean a dataset's raw files and split them into sections; drop duplicates and cross-posts.

    Nothing is written unless all of it succeeds. Raises ``UserError``, with the dataset's name, for
    bad input, and for too few texts for the settings of a comparison. Those are no settings of this
    stage, since they do not change what it writes; the workflow hands over what they take in the
    environment, where Snakemake does not look for changes.
    """
    from mamushi.config.counts import Need, check
    from mamushi.data.examples import build, card
    from mamushi.io import schemas
    from mamushi.io.domains import INFERENCE
    from mamushi.io.files import sha256, write_json
    from mamushi.io.tables import write_table
    from mamushi.registry import load

    try:
        raw = load("dataset", settings.kind).load(settings.loader, files.cache)
        table, copies, counts = build(
            raw,
            settings.sections,
            settings.limit,
            settings.data,
            settings.planted,
            drop_duplicates=settings.drop_duplicates,
        )
        _check_unchanged(settings.inputs, raw.sources)
    except UserError as error:
        raise UserError(str(error), where=f"dataset {settings.dataset}") from None
    for name, n in counts["sections"].items():
        texts = f"{n['forget']:,} forget, {n['retain']:,} retain"
        print(f"{settings.dataset}: section {name}: {texts}", file=sys.stderr)
    if found := counts.get("groups", {}):
        said = f"{found['texts']:,} texts in {found['groups']:,} groups of two or more, the largest"
        print(f"{settings.dataset}: {said} of {found['largest']:,}", file=sys.stderr)
    needs = json.loads(os.environ.get("MAMUSHI_NEEDS", "{}")).get(settings.dataset, [])
    there = counts["sections"].get(INFERENCE, {})
    check(settings.dataset, [Need(*need) for need in needs], there, found.get("inference"))
    about = {}
    if "screened" in counts:
        about["screened"] = counts["screened"]
    if windows := settings.loader.get("windows"):
        # Whether it is documents that have the label, or windows.
        about["windows"] = {**windows, "labelled": not sources.unlabelled(settings.loader)}
    write_table(files.examples, schemas.EXAMPLES, table, metadata=about)
    # So that a removal list can tell that it joins what belongs together, and what its ids are.
    made = sha256(files.examples)
    of = {"examples": made, "rows": _rows_of(settings)}
    write_table(files.duplicates, schemas.DUPLICATES, copies, metadata=of)
    write_json(files.card, card(job.origin["settings"], raw, counts, made))


def _check_unchanged(began: Mapping[str, str], read: Mapping[str, str]) -> None:
    """Raise ``UserError`` where a file that was ``read`` is another one than when the run
    ``began``: its digests would be of what nobody ranked."""
    for name, known in began.items():
        # What lies beside a table is called by its role as well, as `like examples.jsonl`.
        digests = [sha for full, sha in read.items() if full == name or full.endswith(f" {name}")]
        if digests and known not in digests:
            raise UserError("has changed since this run began", where=name, do="run again")


def _rows_of(settings: Examples) -> dict[str, Any]:
    """Return what the ids of a dataset are: of the loader ``table`` the ``column``, null for the
    numbers of rows from 1, that with the ``text``, and how documents are divided. What another
    loader reads has its ids in a column ``id``, if anywhere, and other texts than are ranked."""
    if settings.kind != "table":
        return {"kind": settings.kind, "column": "id", "text": None, "windows": None}
    loader = settings.loader
    windows = loader.get("windows")
    if windows:
        windows = {**windows, "labelled": not sources.unlabelled(loader)}
    return {
        **{"kind": "table", "column": loader["id"], "text": loader["text"], "windows": windows},
        **({"quote": loader["quote"]} if loader.get("quote") else {}),
    }


class ImportEmbeddings(Settings):
    """Columns of vectors that were made elsewhere."""

    embedding: Columns = setting("models.{model}.embeddings")
    inputs: dict[str, str] = setting(
        lambda config, model: sources.contents(
            filter(None, [config["models"][model]["embeddings"]["path"]])
        ),
        default_factory=dict,
    )


class ImportFiles(declared.Files):
    examples: Path = reads("examples table")
    duplicates: Path = reads("duplicates table of the same dataset")
    vectors: Path = reads("Parquet file with a column of vectors")
    data_card: Path | None = option(
        "card of the dataset, which says how many of its rows are in neither table", default=None
    )
    out: Path = writes("embeddings table to write")


def import_embeddings(files: ImportFiles, settings: ImportEmbeddings, job: Job) -> None:
    """Make the embeddings table of vectors that another program made of the texts.

    Raises ``UserError`` for a file that has changed since the workflow looked at it, and for ids
    and vectors that do not fit the dataset: see ``data.vectors``.
    """
    import pyarrow as pa

    from mamushi.data.vectors import aligned, parquet
    from mamushi.io import schemas
    from mamushi.io.digests import of
    from mamushi.io.files import read_json
    from mamushi.io.tables import INFERENCE, read_table, write_table

    if settings.inputs.get(files.vectors.name, of(files.vectors)) != of(files.vectors):
        raise UserError("has changed since this run began", where=files.vectors, do="run again")
    texts = read_table(files.examples, schemas.EXAMPLES, ["id", "domain", "section"])
    copies = read_table(files.duplicates, schemas.DUPLICATES, ["id"])["id"].to_pylist()
    rows = [section == INFERENCE for section in texts["section"].to_pylist()]
    ranked = texts.filter(pa.array(rows))
    known = {*texts["id"].to_pylist(), *copies}
    # Rows without a text or a domain, and those beyond a limit, may have a vector all the same.
    read = read_json(files.data_card)["counts"]["read"] if files.data_card else len(known)
    parts = parquet(files.vectors, settings.embedding.id, settings.embedding.vector)
    ids = ranked["id"].to_pylist()
    vectors = aligned(parts, ids, known, read - len(known), files.vectors)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    columns = {"id": ranked["id"], "domain": ranked["domain"], "embedding": lists}
    write_table(files.out, schemas.EMBEDDINGS, columns, metadata=job.origin)
