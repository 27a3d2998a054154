"""Weigh the forget texts at one budget: what the posterior leaves of each, and of its copies.

The scores are calibrated by cross-fitting, on both domains; all texts that are not in the table
count fully.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Remove


def settings(config: Config, beta: str) -> Remove:
    """Settings of the stage ``weigh``."""
    return Remove(beta=float(beta), code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: Path = reads("scores to weigh by")
    duplicates: Path = reads("the dataset's duplicates table")
    out: Path = writes("the weights table to write")


def run(files: Files, settings: Remove, job: Job) -> None:
    """Raises ``UserError`` for scores that lack one."""
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import FORGET, read_table, write_table
    from mamushi.evidence.calibration import Scores
    from mamushi.selection.actions import removed_shares
    from mamushi.selection.removals import budget_of, removals

    scores = read_table(files.scores, schemas.SCORES)
    if scores["score"].null_count:
        do = "weigh by a selector that scores both domains, such as mamushi"
        raise UserError("has no score for some texts", where=files.scores, do=do)
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    forget = np.array(scores["domain"].to_pylist()) == FORGET
    score = scores["score"].to_numpy().astype(np.float64)
    fold = scores["fold"].fill_null(0).to_numpy().astype(np.int64)
    ratio = Scores(score, forget, fold).estimate().log_ratio
    shares = removed_shares(ratio[forget], budget_of(settings.beta, scores))
    kept = dict(zip(scores["id"].filter(pa.array(forget)).to_pylist(), 1 - shares, strict=True))
    ranked = removals(scores, duplicates, len(kept))
    weights = [kept[name] for name in ranked["id"].to_pylist()]
    columns = {"id": ranked["id"], "weight": weights, "copies": ranked["copies"]}
    write_table(files.out, schemas.WEIGHTS, columns, metadata={"provenance": job.origin})
