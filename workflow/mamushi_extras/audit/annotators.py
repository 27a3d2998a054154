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

from mamushi.errors import UserError, located
from mamushi.io.files import read_plain_json
from mamushi.io.provenance import fingerprint
from mamushi_extras.audit.answers import NO, YES
from mamushi_extras.audit.auditing import Answers

UNSURE = "unsure"
Responses = Mapping[str, str]
"""The answer to each text, by id."""


def read_answers(files: Sequence[Path], audit: Mapping[str, Any]) -> dict[str, Responses]:
    """Read the answers of each annotator, by name. Raises ``UserError`` for a second file of one,
    and for a file of another audit."""
    responses: dict[str, Responses] = {}
    for path in files:
        with located(path):
            content = read_plain_json(path)
            who = content["annotator"]
            if content["audit"] != fingerprint(audit):
                raise UserError("answers another audit", where=path, do="name its folder in --out")
            if who in responses:
                do = "give one a person, each with another name"
                raise UserError(f"a second file of {who!r}", where=path, do=do)
            responses[who] = content["answers"]
    return responses


def merge(order: Sequence[str], people: Mapping[str, Responses], least: int = 1) -> dict[str, str]:
    """Return one answer to each of the texts that so many people have reached, at ``least``, in
    their ``order``: that which so many more give than the other one; else it is unsure."""
    place = {name: place for place, name in enumerate(order, start=1)}
    reached = sorted(max(map(place.__getitem__, answers), default=0) for answers in people.values())
    merged = {}
    for name in order[: reached[-least]] if len(reached) >= least else ():
        votes = [answers[name] for answers in people.values() if answers.get(name) in (YES, NO)]
        margin = 2 * votes.count(YES) - len(votes)
        merged[name] = YES if margin >= least else NO if margin <= -least else UNSURE
    return merged


def count_answers(audit: Mapping[str, Any], merged: Responses) -> Answers:
    """Return what was answered in each stratum."""
    stratum = {drawn["id"]: drawn["stratum"] for drawn in audit["sample"]}
    counted = np.zeros((3, len(audit["strata"])))
    for name, answer in merged.items():
        counted[:, stratum[name]] += (1, answer == YES, answer == UNSURE)
    return Answers(*counted)


def agreement(people: Mapping[str, Responses]) -> list[dict[str, Any]]:
    """Return of each two annotators on how many ``texts`` both say yes or no, the share on which
    they ``agree``, Cohen's ``kappa`` (None where both always say the same word), and the ids on
    which they ``differ``."""
    from sklearn.metrics import cohen_kappa_score

    rows = []
    for (name, first), (other, second) in itertools.combinations(people.items(), 2):
        both = [n for n in first if {first[n], second.get(n, UNSURE)} <= {YES, NO}]
        said = [[answers[n] for n in both] for answers in (first, second)]
        kappa = float(cohen_kappa_score(*said)) if len({*said[0], *said[1]}) > 1 else None
        differ = [n for n in both if first[n] != second[n]]
        agree = 1 - len(differ) / len(both) if both else None
        row = {"annotators": [name, other], "texts": len(both), "agree": agree}
        rows.append(row | {"kappa": kappa, "differ": differ})
    return rows
