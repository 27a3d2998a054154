"""Embeddings of vectors that another program made of the texts, or of their words."""

from pathlib import Path
from typing import Any

from mamushi.config.kinds import NO_PATH, Config, Settings, setting
from mamushi.config.sources import local_path
from mamushi.errors import UserError
from mamushi.io.digests import content_digests, of
from mamushi.io.domains import INFERENCE
from mamushi.io.files import read_json
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi_curate.vectors import IDS

SHARDS = (".parquet", ".pq", ".safetensors")


def vector_files(model: Config) -> list[Path]:
    """Return the files of a model's vectors, one or those of a folder or pattern, by name, and of
    their ids; none where words make them."""
    if not (place := model["embeddings"]["path"]):
        return []
    path = local_path(place)
    pattern = path / "*" if path.is_dir() else path
    shards = sorted(file for file in pattern.parent.glob(pattern.name) if file.suffix in SHARDS)
    ids = [file.with_suffix(IDS) for file in shards if file.suffix == ".safetensors"]
    return [*shards, *filter(Path.is_file, ids)] or [pattern]


class ImportEmbeddings(Settings):
    """Columns of vectors that were made elsewhere and the digests of the files, or ``words``."""

    embedding: dict[str, Any] = setting(
        lambda config, model: {
            key: config["models"][model]["embeddings"][key] for key in ("id", "vector", "words")
        }
    )
    inputs: dict[str, str] = setting(
        lambda config, model: content_digests(map(str, vector_files(config["models"][model])))
    )


def import_embeddings(
    *,
    examples: Input,
    duplicates: Input,
    vectors: list[Input] | None = None,
    data_card: Path | None = None,
    out: Output,
    settings: ImportEmbeddings,
    job: Job,
) -> None:
    """Make the embeddings table of vectors that another program made of the texts, a file or shards
    with their ids, or of their words. ``data_card`` says how many rows of the dataset are in
    neither table. Raises ``UserError`` for ids and vectors that do not fit the dataset."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.io.tables import ranked_columns, write_vectors
    from mamushi_curate.vectors.reading import read_aligned
    from mamushi_curate.vectors.word_vectors import fit_components

    embedding, columns = settings.embedding, ranked_columns(examples)
    if not (vectors or embedding["words"]):
        raise UserError(NO_PATH, where="embeddings.path")
    if not vectors:
        words = ranked_columns(examples, "text")["text"].to_pylist()
        components = fit_components(words, embedding["words"])[1].astype("float16")
        write_vectors(out, [components], columns, job.origin)
        return
    # Rows without a text or a domain, and those beyond a limit, may have a vector all the same.
    texts = parquet.read_table(examples, schemas.EXAMPLES, ["id", "section"])
    copies = parquet.read_table(duplicates, schemas.DUPLICATES, ["id"])["id"]
    known = len(texts) + len(copies)
    others = texts.filter(pc.not_equal(texts["section"], INFERENCE))["id"]
    matrix = read_aligned(
        [path for path in vectors if path.suffix != IDS],
        (embedding["id"], embedding["vector"]),
        columns["id"],
        pa.chunked_array([*others.chunks, *copies.chunks], pa.string()),
        read_json(data_card)["counts"]["read"] - known if data_card else 0,
        out.parent,
        by_row=parquet.read_metadata(duplicates).get("rows", {"column": "id"})["column"] is None,
    )
    if any(settings.inputs.get(path.name, of(path)) != of(path) for path in vectors):
        raise UserError("changed since this run began", where="embeddings.path", do="run again")
    write_vectors(out, [matrix], columns, job.origin)
