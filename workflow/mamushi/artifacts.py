"""The tables that stages hand to each other: one declared schema each, checked when written and
when read. All are Parquet with zstd; embeddings alone are stored plain, because compression saves
8% of them and costs seconds."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.domains import (
    CONTAMINATION,
    DOMAINS,
    EVALUATION,
    FORGET,
    INFERENCE,
    RETAIN,
    SECTIONS,
)
from mamushi.errors import UserError
from mamushi.files import atomic

__all__ = [
    "CONTAMINATION",
    "DOMAINS",
    "EVALUATION",
    "FORGET",
    "INFERENCE",
    "RETAIN",
    "SCHEMAS",
    "SECTIONS",
    "embeddings_schema",
    "read_metadata",
    "read_table",
    "write_csv",
    "write_table",
]


def _schema(*fields: tuple[str, pa.DataType] | tuple[str, pa.DataType, bool]) -> pa.Schema:
    return pa.schema([pa.field(f[0], f[1], nullable=len(f) == 3 and bool(f[2])) for f in fields])


NULLABLE = True

SCHEMAS: dict[str, pa.Schema] = {
    # One row per kept text. Loaders add the labels that it came with as `label_*` columns.
    "examples": _schema(
        ("id", pa.string()),
        ("text", pa.string()),
        ("domain", pa.string()),
        ("section", pa.string()),
        # The exact log p1(text)/p2(text) in nats; known for synthetic data alone.
        ("log_density_ratio", pa.float64(), NULLABLE),
    ),
    # One row per duplicate that was dropped, in the order of the files. `kept_id` is the text that
    # was kept for it (a limit may have dropped that one later), null for a cross-post, of which
    # none is kept. `reason`: exact, near or cross_post.
    "duplicates": _schema(
        ("id", pa.string()), ("kept_id", pa.string(), NULLABLE), ("reason", pa.string())
    ),
    # Token ids with the BOS where the tokenizer defines one, in the order of the examples.
    "tokens": _schema(("id", pa.string()), ("tokens", pa.list_(pa.int32()))),
    # The width of `embedding` is the model's: see `embeddings_schema`.
    "embeddings": _schema(("id", pa.string()), ("domain", pa.string())),
    # The inference section. Rank 1 goes first; only forget examples have one. The score of a
    # retain example is the same function at its embedding, null where a selector has none.
    # `fold` is the cross-fitting fold in which an example was held out, null without folds.
    "scores": _schema(
        ("id", pa.string()),
        ("domain", pa.string()),
        ("score", pa.float64(), NULLABLE),
        ("rank", pa.int64(), NULLABLE),
        ("fold", pa.int16(), NULLABLE),
    ),
    # The product: the forget examples to remove at one budget, by rank. `copies` are the ids of the
    # texts that were collapsed into the example and are to be removed with it, sorted.
    "removals": _schema(
        ("id", pa.string()),
        ("score", pa.float64()),
        ("rank", pa.int64()),
        ("copies", pa.list_(pa.string())),
    ),
    # One row per domain. `nll` is the mean negative log-likelihood per predicted token in nats.
    "perplexity": _schema(
        ("domain", pa.string()),
        ("texts", pa.int64()),
        ("tokens", pa.int64()),
        ("nll", pa.float64()),
        ("perplexity", pa.float64()),
    ),
    # One row per optimizer step. `tokens` are predicted tokens, `seconds` since the first step.
    "train_log": _schema(
        ("step", pa.int64()),
        ("epoch", pa.float64()),
        ("loss", pa.float64()),
        ("tokens", pa.int64()),
        ("tokens_per_second", pa.float64()),
        ("learning_rate", pa.float64()),
        ("gradient_norm", pa.float64()),
        ("seconds", pa.float64()),
    ),
    "sad": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        ("beta", pa.float64()),
        ("removed", pa.int64()),
        ("ppl_forget", pa.float64()),
        ("ppl_retain", pa.float64()),
        ("gold_ppl_forget", pa.float64()),
        ("gold_ppl_retain", pa.float64()),
        ("sad", pa.float64()),
        ("log_sad", pa.float64()),
    ),
    # Mean and standard error over the seeds of each row of `sad`; the area columns belong to the
    # whole curve and repeat on each of its rows. Errors are null with a single seed.
    "sad_summary": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("selector", pa.string()),
        ("beta", pa.float64()),
        ("removed", pa.int64()),
        ("seeds", pa.int64()),
        ("ppl_forget_mean", pa.float64()),
        ("ppl_forget_se", pa.float64(), NULLABLE),
        ("ppl_retain_mean", pa.float64()),
        ("ppl_retain_se", pa.float64(), NULLABLE),
        ("sad_mean", pa.float64()),
        ("sad_se", pa.float64(), NULLABLE),
        ("log_sad_mean", pa.float64()),
        ("log_sad_se", pa.float64(), NULLABLE),
        ("area_mean", pa.float64()),
        ("area_se", pa.float64(), NULLABLE),
        # Between the first and the last measured budget alone, without the shared ends.
        ("area_measured_mean", pa.float64()),
        ("area_measured_se", pa.float64(), NULLABLE),
        # Mean of area / (mean area of random) - 1: -0.25 is a quarter below random.
        ("area_vs_random", pa.float64(), NULLABLE),
        ("area_vs_random_se", pa.float64(), NULLABLE),
    ),
    # From the metadata of the scores; null where a selector or dataset has no such thing.
    "selection": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        ("auc", pa.float64(), NULLABLE),
        ("auc_fold_mean", pa.float64(), NULLABLE),
        ("auc_fold_min", pa.float64(), NULLABLE),
        ("auc_fold_max", pa.float64(), NULLABLE),
        # Largest difference between the offsets of two folds, in nats.
        ("fold_offset", pa.float64(), NULLABLE),
        ("spearman_with_truth", pa.float64(), NULLABLE),
        # Forget examples minus their distinct scores.
        ("ties", pa.int64()),
    ),
}
"""Schemas by artifact name. Columns may be null only where declared so."""


def embeddings_schema(width: int) -> pa.Schema:
    """Schema of the embeddings of a model with hidden size ``width``: float16 vectors."""
    item = pa.field("item", pa.float16(), nullable=False)
    vectors = pa.field("embedding", pa.list_(item, width), nullable=False)
    return SCHEMAS["embeddings"].append(vectors)


def write_table(
    path: str | Path,
    name: str,
    columns: Mapping[str, Any] | pa.Table,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write an artifact after checking it against the schema ``name``, whole or not at all.

    ``metadata`` goes into the file's key ``mamushi`` as JSON; ``read_metadata`` gives it back.
    Raises ``ValueError`` when a column is missing or has nulls that its schema forbids: that is a
    mistake of the program, not of its user.
    """
    schema = SCHEMAS[name]
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    if name == "embeddings":
        schema = embeddings_schema(table.schema.field("embedding").type.list_size)
    extra = [f for f in table.schema if f.name not in schema.names]
    unexpected = [f.name for f in extra if not (name == "examples" and f.name.startswith("label_"))]
    missing = [n for n in schema.names if n not in table.column_names]
    if missing or unexpected:
        raise ValueError(f"{name}: columns missing {missing}, not in the schema {unexpected}")
    full = pa.schema([*schema, *extra])
    table = table.select(full.names).cast(full)
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"{name}.{field.name}: {table[field.name].null_count} nulls")
    if metadata is not None:
        table = table.replace_schema_metadata({"mamushi": json.dumps(metadata, sort_keys=True)})
    plain = name == "embeddings"
    with atomic(path) as part:
        pq.write_table(
            table,
            part,
            compression="none" if plain else "zstd",
            use_dictionary=not plain,
            row_group_size=16384 if plain else None,
        )


def read_table(path: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read an artifact and check it against the schema ``name``.

    Raises ``UserError`` when the file is missing, damaged, or lacks a column or has another type.
    """
    try:
        file = pq.ParquetFile(path, memory_map=True)
        found = file.schema_arrow
        wanted = SCHEMAS[name]
        if name == "embeddings":
            if "embedding" not in found.names or not pa.types.is_fixed_size_list(
                found.field("embedding").type
            ):
                raise UserError(
                    "no column 'embedding' of fixed-size vectors",
                    where=path,
                    do="delete it and run again",
                )
            wanted = embeddings_schema(found.field("embedding").type.list_size)
        for field in wanted:
            if field.name not in found.names or found.field(field.name).type != field.type:
                got = found.field(field.name).type if field.name in found.names else "nothing"
                raise UserError(
                    f"column {field.name!r} of the {name} table should be {field.type}, is {got}",
                    where=path,
                    do="delete it and run again",
                )
        return file.read(columns=list(columns) if columns is not None else None)
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        raise UserError(
            f"damaged or not a Parquet file ({error})", where=path, do="delete it and run again"
        ) from None


def write_csv(path: str | Path, table: pa.Table) -> None:
    """Write a table for people: six significant digits, nulls as empty cells.

    The Parquet file of the same name beside it holds every digit. Raises ``UserError`` when the
    disk is full.
    """
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])


def read_metadata(path: str | Path) -> dict[str, Any]:
    """The ``metadata`` that ``write_table`` stored; empty where there is none."""
    try:
        stored = pq.read_schema(path, memory_map=True).metadata or {}
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        raise UserError(
            f"damaged or not a Parquet file ({error})", where=path, do="delete it and run again"
        ) from None
    loaded = json.loads(stored.get(b"mamushi", b"{}"))
    return dict(loaded)
