"""What this room adds to the core: people's answers overrule what marked the texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.data.raw import Raw


def applies(settings: Mapping[str, Any]) -> bool:
    """Tell whether there are answers of people about a dataset."""
    return bool(settings.get("answers"))


def answer_rows(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Take people's answers over what marked the rows."""
    from mamushi_extras.audit.answers import apply_answers

    return apply_answers(raw, settings)
