"""What people said of texts, which overrules what marked them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.io.files import read_plain_json

YES, NO = "yes", "no"
"""What people answer who are asked whether a text is of the forget domain."""
ANSWERED = "_answered"
"""Column of ``Raw.labels``: what they said; None of a text that nobody was asked about."""


def apply_answers(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Return the rows, of which those that an audit has an answer to are of the domain that it
    says. Raises ``UserError`` for another file, and for a text that is not there."""
    path = Path(settings["answers"])
    content = read_plain_json(path)
    if not isinstance(content, dict) or not isinstance(labels := content.get("labels"), dict):
        do = "give merged.json, which mamushi audit --merge writes"
        raise UserError("holds no labels of an audit", where=path, do=do)
    if lacking := labels.keys() - set(raw.ids):
        problem = f"labels {min(lacking)!r}, which the table lacks"
        raise UserError(problem, where=path, do="give the table that was audited, with its ids")
    answers = [labels.get(name) for name in raw.ids]
    answered = np.array(answers, dtype=object)
    forget = np.where(answered.astype(bool), answered == YES, raw.forget)
    counts = {answer: answers.count(answer) for answer in (YES, NO)}
    metadata = {**raw.extra_metadata, "answers": counts}
    labelled = {**raw.labels, ANSWERED: answers}
    return replace(raw, forget=forget, labels=labelled, extra_metadata=metadata)
