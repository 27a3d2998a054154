"""Tables of what the scores say, for tests of the pages that show them."""

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


WORDS = "strong separation, trust the ranking: AUC 0.93 [0.90, 0.95]"


def write_calibrated(path: Path, forget: list[str], retain: list[str], words: str = WORDS) -> None:
    """A table of calibrated scores with the verdict ``words`` on an AUC of 0.93."""
    n = len(forget) + len(retain)
    columns = {
        "id": [*forget, *retain],
        "domain": ["forget"] * len(forget) + ["retain"] * len(retain),
        **{name: [0.5] * n for name in ("score", "log_ratio")},
        **dict.fromkeys(("group", "close_group"), pa.nulls(n, pa.int64())),
    }
    told = {"auc": 0.93, "auc_low": 0.9, "auc_high": 0.95, "kept": 0.8, "words": words}
    write_table(path, schemas.CALIBRATED, columns, metadata={"verdict": {**told, "reason": None}})
