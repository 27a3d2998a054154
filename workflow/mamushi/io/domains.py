"""The words of the examples table: the two domains and the three sections, and names of rows."""

import math
from decimal import Decimal
from typing import Any

FORGET, RETAIN = "forget", "retain"
DOMAINS = (FORGET, RETAIN)
CONTAMINATION, INFERENCE, EVALUATION = "contamination", "inference", "evaluation"
SECTIONS = (CONTAMINATION, INFERENCE, EVALUATION)
TURNS = "_turns"
"""Column of ``Raw.labels``: the turns of a conversation as JSON, for a model's template."""


def name_of(value: Any) -> str | None:
    """Return an id or a label as text, the same for ``1``, ``1.0`` and ``"1"``, and for ``true``
    and ``"true"``. Text stays as it is. Return None for null, NaN, infinite and empty values."""
    is_number = isinstance(value, float | Decimal)
    if value is None or value == "" or (is_number and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value) if is_number and value == int(value) else value)
