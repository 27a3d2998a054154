"""Triage tables for tests of the page that shows them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table


def write_triage(path: Path, texts: dict[str, str], why: str | None = None) -> None:
    """A table that names forget texts by id, or says ``why`` it names none."""
    rows = [
        {
            **{"dataset": "d", "model": "m", "seed": 0, "selector": "one", "domain": "forget"},
            **{"place": place, "id": name, "score": -1.0, "fold": None, "other_beyond": 0.75},
            **{"own_beyond": 0.1, "stable": 0.5, "text": text},
            "why": "75.0% of the retain texts look more like forget",
        }
        for place, (name, text) in enumerate(texts.items(), start=1)
    ]
    table = pa.Table.from_pylist(rows, schema=schemas.TRIAGE.schema)
    write_table(path, schemas.TRIAGE, table, metadata={"details": {"why": why}})
