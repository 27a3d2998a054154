"""Vectors that another program made of the texts, as the embeddings table of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mamushi.configuration.models import Columns
from mamushi.configuration.sources import contents
from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Config, Settings, part


class ImportEmbeddings(Settings):
    """Settings of the stage ``import_embeddings``: vectors that were made elsewhere."""

    embedding: Columns
    inputs: dict[str, str] = field(default_factory=dict)


def settings(config: Config, model: str) -> ImportEmbeddings:
    given = config["models"][model]["embeddings"]
    return ImportEmbeddings(
        embedding=part(Columns, given),
        inputs=contents([given["path"]] if given["path"] else []),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("examples table")
    duplicates: Path = reads("duplicates table of the same dataset")
    vectors: Path = reads("Parquet file with a column of vectors")
    data_card: Path | None = option(
        "card of the dataset, which says how many of its rows are in neither table", default=None
    )
    out: Path = writes("embeddings table to write")


def run(files: Files, settings: ImportEmbeddings, job: Job) -> None:
    """Raises ``UserError`` for a file that has changed since the workflow looked at it, and for ids
    and vectors that do not fit the dataset: see ``data.vectors``."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.digests import of
    from mamushi.artifacts.files import read_json
    from mamushi.artifacts.tables import INFERENCE, read_table, write_table
    from mamushi.data.vectors import aligned, parquet

    if settings.inputs.get(files.vectors.name, of(files.vectors)) != of(files.vectors):
        raise UserError("has changed since this run began", where=files.vectors, do="run again")
    examples = read_table(files.examples, schemas.EXAMPLES, ["id", "domain", "section"])
    copies = read_table(files.duplicates, schemas.DUPLICATES, ["id"])["id"].to_pylist()
    rows = [section == INFERENCE for section in examples["section"].to_pylist()]
    ranked = examples.filter(pa.array(rows))
    known = {*examples["id"].to_pylist(), *copies}
    # Rows without a text or a domain, and those beyond a limit, may have a vector all the same.
    read = read_json(files.data_card)["counts"]["read"] if files.data_card else len(known)
    parts = parquet(files.vectors, settings.embedding.id, settings.embedding.vector)
    ids = ranked["id"].to_pylist()
    vectors = aligned(parts, ids, known, read - len(known), files.vectors)
    columns = {
        "id": ranked["id"],
        "domain": ranked["domain"],
        "embedding": pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.reshape(-1)), vectors.shape[1]
        ),
    }
    write_table(files.out, schemas.EMBEDDINGS, columns, metadata=job.origin)
