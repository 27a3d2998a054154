"""What this room adds to the core: people's answers overrule what marked the texts."""

from collections.abc import Callable, Mapping
from typing import Any


def rows(settings: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Take people's answers over what marked the rows."""

    def answer(raw: Any, settings: Mapping[str, Any]) -> Any:
        from mamushi_extras.audit.answers import apply_answers

        return apply_answers(raw, settings)

    return {"answer": answer} if settings.get("answers") else {}
