"""Tables of examples, scores and refits, as stages of the evidence read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.io import schemas
from mamushi.io.tables import write_table


def domains(forget: Any) -> list[str]:
    """The domain of each text (n,), by whether it is of the forget set."""
    return np.where(forget, "forget", "retain").tolist()


def scores_table(score: Any, forget: Any) -> pa.Table:
    """The table ``scores`` of scores (n,), NaN where there is none."""
    rank = np.zeros(len(score), dtype=np.int64)
    order = np.argsort(-score[forget], kind="stable")
    rank[np.flatnonzero(forget)[order]] = np.arange(1, len(order) + 1)
    columns = {
        **{"id": [f"t{i}" for i in range(len(score))], "domain": domains(forget)},
        **{"score": pa.array(score, from_pandas=True), "rank": pa.array(rank, mask=~forget)},
    }
    return pa.table({**columns, "fold": pa.nulls(len(score), pa.int16())})


ROWS = {"kind": "table", "column": "id", "text": "text", "windows": None}
"""What the ids of a list are, as its metadata say."""


def unknown_texts(count: int) -> dict[str, Any]:
    """Columns of a list of so many texts, without copies, of whose texts nothing is asked."""
    none = pa.array([[] for _ in range(count)], pa.list_(pa.string()))
    return {"copies": none, "copies_sha256": none, "text_sha256": [""] * count}


def write_examples(path: Path, ids: Sequence[str], domain: Sequence[str], **more: Any) -> None:
    """Texts of the inference section: their ids, but for what is in ``more``."""
    n = len(ids)
    unknown = pa.nulls(n, pa.float64())
    rest = {"text": ids, "section": ["inference"] * n, "log_density_ratio": unknown}
    rest["group"] = pa.nulls(n, pa.string())
    write_table(path, schemas.EXAMPLES, {"id": ids, "domain": domain, **rest, **more})


def write_scores(
    path: Path, ids: Sequence[str], domain: Sequence[str], score: Any, fold: Any = None
) -> None:
    """Scores, NaN where there is none, with the ranks of forget texts that follow from them."""
    table = scores_table(np.array(score, dtype=np.float64), np.array(domain) == "forget")
    columns = {**dict(zip(table.column_names, table.columns, strict=True)), "id": ids}
    if fold is not None:
        columns["fold"] = pa.array(fold, pa.int16())
    write_table(path, schemas.SCORES, columns)
