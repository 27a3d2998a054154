"""What this room adds to the core: what people said of texts, which overrules what marked them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.files import read_plain_json

YES, NO = "yes", "no"
"""What people answer who are asked whether a text is of the forget domain."""
ANSWERED = "_answered"
"""Column of ``Raw.labels``: what they said; None of a text that nobody was asked about."""


def reading_steps(settings: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the step that puts people's answers in the place of labels, if there are answers."""
    return {"answer": apply_answers} if settings.get("answers") else {}


def apply_answers(raw: Any, settings: Mapping[str, Any]) -> Any:
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
    answers, forget = [labels.get(name) for name in raw.ids], raw.forget.copy()
    for row, answer in enumerate(answers):
        forget[row] = answer == YES if answer else forget[row]
    counts = {answer: answers.count(answer) for answer in (YES, NO)}
    metadata = {**raw.extra_metadata, "answers": counts}
    labelled = {**raw.labels, ANSWERED: answers}
    return replace(raw, forget=forget, labels=labelled, extra_metadata=metadata)
