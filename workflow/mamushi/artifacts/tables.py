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

from mamushi.artifacts import seal
from mamushi.artifacts.domains import (
    CONTAMINATION,
    DOMAINS,
    EVALUATION,
    FORGET,
    INFERENCE,
    RETAIN,
    SECTIONS,
)
from mamushi.artifacts.files import atomic
from mamushi.errors import UserError

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
    # One row per optimizer step of an unlearner. `forget_loss` and `retain_loss` are mean NLLs per
    # predicted token of the step's forget and retain texts, in nats and before its update;
    # `forget_mean` is the running mean of `forget_loss` by which a run stops.
    "unlearn_log": _schema(
        ("step", pa.int64()),
        ("epoch", pa.float64()),
        ("loss", pa.float64()),
        ("forget_loss", pa.float64()),
        ("retain_loss", pa.float64()),
        ("forget_mean", pa.float64()),
        ("tokens", pa.int64()),
        ("tokens_per_second", pa.float64()),
        ("learning_rate", pa.float64()),
        ("gradient_norm", pa.float64()),
        ("seconds", pa.float64()),
    ),
    # Every measured point of the budget-perplexity curves; `unlearner` may be `retraining`.
    # `recovery` is the share of the way from the start to the gold standard in forget perplexity.
    "unlearning": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("unlearner", pa.string()),
        ("selector", pa.string()),
        ("beta", pa.float64()),
        ("removed", pa.int64()),
        # Optimizer steps, and the step at which a forget loss above its limit ended the run.
        ("steps", pa.int64()),
        ("stopped_at", pa.int64(), NULLABLE),
        ("ppl_forget", pa.float64()),
        ("ppl_retain", pa.float64()),
        ("start_ppl_forget", pa.float64()),
        ("start_ppl_retain", pa.float64()),
        ("gold_ppl_forget", pa.float64()),
        ("gold_ppl_retain", pa.float64()),
        ("recovery", pa.float64(), NULLABLE),
    ),
    # One row per dataset, model, unlearner and selector: the smallest budget that recovers the
    # target share of the gap, on the mean curve over seeds. Null where it is censored.
    "half_gap": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("unlearner", pa.string()),
        ("selector", pa.string()),
        ("seeds", pa.int64()),
        ("start_ppl_forget", pa.float64()),
        ("target_ppl_forget", pa.float64()),
        ("gold_ppl_forget", pa.float64()),
        ("budget", pa.float64(), NULLABLE),
        # 95% interval of the paired bootstrap over seeds; null with one seed. A null upper end with
        # a lower one means that it lies beyond the whole forget set.
        ("budget_low", pa.float64(), NULLABLE),
        ("budget_high", pa.float64(), NULLABLE),
        ("censored", pa.bool_()),
        # Share of the bootstrap's curves that never reach the target.
        ("censored_share", pa.float64(), NULLABLE),
        # Times that the curve falls below the target again after its first crossing.
        ("recrossings", pa.int64()),
        # Retain perplexity at the crossing over that of the start: the largest of the seeds.
        ("retain_factor", pa.float64(), NULLABLE),
        ("within_cap", pa.bool_(), NULLABLE),
        # Relative savings in examples: 0.76 is 76% fewer than the whole forget set, or than random.
        ("saving_vs_full", pa.float64(), NULLABLE),
        ("saving_vs_random", pa.float64(), NULLABLE),
        ("saving_vs_random_low", pa.float64(), NULLABLE),
        ("saving_vs_random_high", pa.float64(), NULLABLE),
    ),
    # What a model says after each prompt, as token ids: the texts are for the table `generations`.
    "continuations": _schema(
        ("prompt", pa.string()),
        ("prompt_tokens", pa.list_(pa.int32())),
        ("tokens", pa.list_(pa.int32())),
    ),
    # The continuations of all models of a run, read by its gold model. `source` is an endpoint or
    # an unlearner. `text` has profanity masked.
    "generations": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("source", pa.string()),
        ("selector", pa.string(), NULLABLE),
        ("beta", pa.float64(), NULLABLE),
        ("prompt", pa.string()),
        ("text", pa.string()),
        ("tokens", pa.int64()),
        ("repetition", pa.float64()),
        ("distinct_1", pa.float64()),
        ("distinct_2", pa.float64()),
        ("distinct_3", pa.float64()),
        # Mean log-likelihood per token under the gold model, in nats.
        ("gold_log_likelihood", pa.float64()),
    ),
    # Held-out perplexity after so many steps of fine-tuning on a few forget examples.
    "relearning_curve": _schema(
        ("step", pa.int64()),
        ("examples", pa.int64()),
        ("ppl_forget", pa.float64()),
        ("ppl_retain", pa.float64()),
    ),
    # `relapse` is the share of the way back from step 0 to the start model in forget perplexity.
    "relearning": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("source", pa.string()),
        ("selector", pa.string(), NULLABLE),
        ("beta", pa.float64(), NULLABLE),
        ("step", pa.int64()),
        ("examples", pa.int64()),
        ("ppl_forget", pa.float64()),
        ("ppl_retain", pa.float64()),
        ("relapse", pa.float64(), NULLABLE),
    ),
    # One row per run and selector, of its out-of-fold scores. Null where a selector has no score
    # for retain examples, no folds, or where a number is not defined (a mean of 0 has no CoV).
    "diagnostics": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        ("n_forget", pa.int64()),
        ("n_retain", pa.int64()),
        ("forget_mean", pa.float64()),
        ("forget_sd", pa.float64()),
        ("forget_min", pa.float64()),
        ("forget_q25", pa.float64()),
        ("forget_median", pa.float64()),
        ("forget_q75", pa.float64()),
        ("forget_max", pa.float64()),
        # Coefficient of variation: sd / |mean|.
        ("forget_cov", pa.float64(), NULLABLE),
        ("retain_mean", pa.float64(), NULLABLE),
        ("retain_sd", pa.float64(), NULLABLE),
        # Fisher discriminability: difference of means over the root mean variance.
        ("fisher", pa.float64(), NULLABLE),
        ("auc", pa.float64(), NULLABLE),
        ("auc_fold_mean", pa.float64(), NULLABLE),
        ("auc_fold_sd", pa.float64(), NULLABLE),
        ("auc_fold_min", pa.float64(), NULLABLE),
        ("auc_fold_max", pa.float64(), NULLABLE),
        # Expected calibration error once the log prior odds are restored.
        ("ece", pa.float64(), NULLABLE),
        ("fold_offset", pa.float64(), NULLABLE),
        ("ties", pa.int64()),
    ),
    # One row per run and k = 1..components. Shares are of the domain's whole variance; `energy` is
    # the share of what the top components hold. Angles in degrees, between the two top-k subspaces;
    # `angle_sorted` is the k-th smallest angle between the two largest subspaces.
    "geometry": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("k", pa.int64()),
        ("singular_forget", pa.float64()),
        ("singular_retain", pa.float64()),
        ("variance_forget", pa.float64()),
        ("variance_retain", pa.float64()),
        ("energy_forget", pa.float64()),
        ("energy_retain", pa.float64()),
        ("power", pa.float64()),
        ("power_cumulative", pa.float64()),
        ("affinity", pa.float64()),
        ("angle_median", pa.float64()),
        ("angles_above_45", pa.float64()),
        ("angle_sorted", pa.float64()),
    ),
    # One row per run, selector and budget: removal and preservation in nats with 95% bootstrap
    # bands. `form` is how preservation was estimated (see selection/manifest.py). `exact_*` are
    # known for synthetic data alone.
    "frontier": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        ("beta", pa.float64()),
        ("removed", pa.int64()),
        ("removal", pa.float64()),
        ("removal_low", pa.float64()),
        ("removal_high", pa.float64()),
        ("preservation", pa.float64()),
        ("preservation_low", pa.float64()),
        ("preservation_high", pa.float64()),
        ("form", pa.string()),
        ("exact_removal", pa.float64(), NULLABLE),
        ("exact_preservation", pa.float64(), NULLABLE),
    ),
    # One row per dataset, model, selector and target. Budgets are means over seeds with the range
    # that seeds and bootstrap span; null where no budget below 1 reaches the target. `measured` is
    # the budget at which the retrained models reach it, where there are any.
    "advice": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("selector", pa.string()),
        # removal, preservation or sad.
        ("target", pa.string()),
        ("value", pa.float64()),
        ("budget", pa.float64(), NULLABLE),
        ("budget_low", pa.float64(), NULLABLE),
        ("budget_high", pa.float64(), NULLABLE),
        ("measured", pa.float64(), NULLABLE),
        ("error", pa.float64(), NULLABLE),
        # Area under the predicted curve over budgets 0 to 1, which orders selectors, and of SAD.
        ("predicted_area", pa.float64(), NULLABLE),
        ("measured_area", pa.float64(), NULLABLE),
    ),
    # One row per selector on one run's embeddings. Seconds: the median and half the interquartile
    # range over the repeats. Memory: the peak beyond what was in use before.
    "runtime": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        ("n_forget", pa.int64()),
        ("n_retain", pa.int64()),
        ("width", pa.int64()),
        ("threads", pa.int64()),
        ("repeats", pa.int64()),
        ("wall_seconds", pa.float64()),
        ("wall_spread", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("cpu_spread", pa.float64()),
        ("peak_mib", pa.float64()),
    ),
    # The first and the last of a ranking. `text` is cut and has profanity masked.
    "qualitative_ranking": _schema(
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("selector", pa.string()),
        # top or bottom, and the place there, from 1.
        ("end", pa.string()),
        ("place", pa.int64()),
        ("rank", pa.int64()),
        ("score", pa.float64()),
        ("id", pa.string()),
        ("text", pa.string()),
    ),
    # The numbers that the paper quotes beside ours. `setting` is the paper's; null where ours has
    # no such number.
    "paper": _schema(
        ("quantity", pa.string()),
        ("setting", pa.string()),
        ("paper", pa.float64()),
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("seed", pa.int64()),
        ("ours", pa.float64(), NULLABLE),
    ),
    # How loose the transfer bound is, over random worlds: quantiles of bound / regret.
    "theory": _schema(
        ("bound", pa.string()),
        ("worlds", pa.int64()),
        ("held", pa.int64()),
        ("ratio_q05", pa.float64(), NULLABLE),
        ("ratio_median", pa.float64(), NULLABLE),
        ("ratio_q95", pa.float64(), NULLABLE),
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
    about = {} if metadata is None else {"mamushi": json.dumps(metadata, sort_keys=True)}
    plain = name == "embeddings"
    with atomic(path) as part:
        pq.write_table(
            table.replace_schema_metadata({**about, "mamushi.seal": seal.SLOT}),
            part,
            compression="none" if plain else "zstd",
            use_dictionary=not plain,
            row_group_size=16384 if plain else None,
            # For other programs that read it.
            write_page_checksum=True,
        )
        seal.seal(part)


def read_table(path: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read an artifact and check it against the schema ``name``.

    Raises ``UserError`` when the file is missing, damaged, or lacks a column or has another type.
    """
    file = _opened(path)
    found, wanted = file.schema_arrow, SCHEMAS[name]
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
        got = found.field(field.name).type if field.name in found.names else "nothing"
        if got != field.type:
            raise UserError(
                f"column {field.name!r} of the {name} table should be {field.type}, is {got}",
                where=path,
                do="delete it and run again",
            )
    return file.read(columns=list(columns) if columns is not None else None)


def read_metadata(path: str | Path) -> dict[str, Any]:
    """The ``metadata`` that ``write_table`` stored; empty where there is none. Raises ``UserError``
    when the file is missing or damaged."""
    stored = _opened(path).schema_arrow.metadata or {}
    return dict(json.loads(stored.get(b"mamushi", b"{}")))


def _opened(path: str | Path) -> pq.ParquetFile:
    """A table, every bit of which is as it was written: see ``seal``."""
    return pq.ParquetFile(pa.BufferReader(pa.py_buffer(seal.opened(path))))


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
