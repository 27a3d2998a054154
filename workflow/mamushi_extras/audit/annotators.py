"""What people answered about the texts of an audit: read, merged, and how far they agree.

The majority of those who say yes or no decides. A text on which they are divided is unsure, and so
is one that all are unsure of or that was passed over. Texts behind the last that was answered are
as if they had not been drawn, since the order is by chance.

People err. One who takes 2% of what is kept for the domain finds more there by mistake than there
is, and nothing in the answers of one tells it. So shares are estimated by texts that two answered,
or one person twice: where they differ, nobody can say. Nor can two against one, who are wrong
together three times as often as two of two.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mamushi.errors import UserError, located
from mamushi.io.files import read_plain_json
from mamushi.io.provenance import fingerprint
from mamushi_extras.audit.answers import NO, YES
from mamushi_extras.audit.auditing import Answers

UNSURE = "unsure"


def read_answers(files: Sequence[Path], audit: Mapping[str, Any]) -> pd.DataFrame:
    """Read the answers to the texts of an audit, a row per text by its id in the order of reading,
    and a column per annotator. Raises ``UserError`` for a second file of one, and for a file of
    another audit."""
    people: dict[str, Any] = {}
    for path in files:
        with located(path):
            content = read_plain_json(path)
            who = content["annotator"]
            if content["audit"] != fingerprint(audit):
                raise UserError("answers another audit", where=path, do="name its folder in --out")
            if who in people:
                do = "give one a person, each with another name"
                raise UserError(f"a second file of {who!r}", where=path, do=do)
            people[who] = content["answers"]
    return pd.DataFrame(people, index=[drawn["id"] for drawn in audit["sample"]], dtype=object)


def merge(people: pd.DataFrame, least: int = 1) -> pd.Series:
    """Return one answer to each of the texts that so many people have reached, at ``least``: that
    which so many more give than the other one; else it is unsure."""
    places = np.arange(1, len(people) + 1)[:, None] * people.notna().to_numpy()
    reached = np.sort(places.max(axis=0))
    count = reached[-least] if len(reached) >= least else 0
    margin = ((people == YES).sum(axis=1) - (people == NO).sum(axis=1))[:count]
    merged = np.select([margin >= least, margin <= -least], [YES, NO], UNSURE)
    return pd.Series(merged, margin.index, dtype=object)


def count_answers(audit: Mapping[str, Any], merged: pd.Series) -> Answers:
    """Return what was answered in each stratum."""
    stratum = [drawn["stratum"] for drawn in audit["sample"]][: len(merged)]
    h = len(audit["strata"])
    every, yes, unsure = np.ones(len(merged)), merged == YES, merged == UNSURE
    return Answers(
        *(np.bincount(stratum, weights, h).astype(np.float64) for weights in (every, yes, unsure))
    )


def agreement(people: pd.DataFrame) -> list[dict[str, Any]]:
    """Return of each two annotators on how many ``texts`` both say yes or no, if on any, the share
    on which they ``agree``, Cohen's ``kappa`` (1 where both always say the same word), and the
    ids on which they ``differ``."""
    from sklearn.metrics import cohen_kappa_score

    rows = []
    for pair in itertools.combinations(people, 2):
        both = people[[*pair]]
        both = both[both.isin([YES, NO]).all(axis=1)]
        if len(both):
            first, second = (both[who].tolist() for who in pair)
            differ = both.index[both[pair[0]] != both[pair[1]]].tolist()
            about = {"annotators": [*pair], "texts": len(both), "differ": differ}
            told = len({*first, *second}) > 1
            kappa = float(cohen_kappa_score(first, second)) if told else 1.0
            rows.append({**about, "agree": 1 - len(differ) / len(both), "kappa": kappa})
    return rows
