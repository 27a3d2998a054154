"""Tables of what the scores say, for tests of the pages that show them."""

from pathlib import Path
from typing import Any

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


SEPARATION = {
    **{"auc": 0.93, "auc_low": 0.9, "auc_high": 0.95, "matched": 0.92, "matched_low": 0.89},
    "follows": [],
}
WORDS = "strong separation, AUC 0.93 [0.90, 0.95]"
"""What follows from it of a ranking."""


def write_stability(path: Path) -> None:
    """A table of how certain lists are, of no text, by scores with ``SEPARATION``."""
    about = {"rankings": 1, "budgets": {}, "separation": SEPARATION}
    write_table(path, schemas.STABILITY, schemas.STABILITY.schema.empty_table(), metadata=about)


def judged(act: str = "take") -> dict[str, Any]:
    """What a manifest says of a list whose ranking is worth ``WORDS``."""
    found = {"act": act, "ranking": WORDS, "list": "1 of 9 texts are toss-ups"}
    return {"verdict": f"act on it: {WORDS}", "judgement": found, "expected": {"by": "s"}}
