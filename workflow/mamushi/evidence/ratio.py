"""The scores that a density ratio is estimated from, as the stages of the evidence read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import FORGET, read_table
from mamushi.errors import UserError
from mamushi.evidence.calibration import Doubles, Scores, halves_of
from mamushi.selection.refits import WHOLE, of_table


def read_ratio(scores: str | Path, refits: str | Path) -> tuple[Scores, list[Doubles]]:
    """The scores with their halves, and the scores (n,) of the whole refits.

    Raises ``UserError`` when a text has no score, or the refits are of other texts.
    """
    table = read_table(scores, schemas.SCORES)
    again = read_table(refits, schemas.REFITS)
    if table["score"].null_count:
        raise UserError(
            "the selector that estimates the log-density ratio has no score for some examples",
            where=scores,
            do="set removal.ratio to one that scores both domains, such as mamushi",
        )
    n = len(table)
    if len(again) % n or again["id"].to_pylist()[:n] != table["id"].to_pylist():
        raise UserError(
            f"are refits of other examples than {scores}",
            where=refits,
            do="delete both and score again",
        )
    found = list(of_table(again))
    fold = table["fold"].fill_null(0).to_numpy().astype(np.int64)
    forget = np.array(table["domain"].to_pylist()) == FORGET
    score = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    whole = [scored.scores for part, _, scored in found if part == WHOLE]
    return Scores(score, forget, fold, halves_of(found)), whole
