"""What this room adds to the core: people's answers overrule what marked the texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.data.raw import Raw


def rows(settings: Mapping[str, Any]) -> dict[str, Callable[..., Raw]]:
    """Take people's answers over what marked the rows."""

    def answer(raw: Raw, settings: Mapping[str, Any]) -> Raw:
        from mamushi_extras.audit.answers import apply_answers

        return apply_answers(raw, settings)

    return {"answer": answer} if settings.get("answers") else {}
