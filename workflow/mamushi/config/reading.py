"""Values by their declared types, and every mistake as a line, in the words of pydantic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import as_plain, hints, sections_in
from mamushi.errors import UserError, suggestion
from mamushi.io.copies import display_url

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class ConfigError(UserError):
    """One or more mistakes in the configuration; ``lines`` has a line for each."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [" ".join(line.split()) for line in lines]
        super().__init__(self.lines[0])
        self.args = ("\n".join(self.lines),)


def refuse(mistakes: Iterable[str | None]) -> None:
    """Raise ``ConfigError`` with a line for each mistake, if there is one."""
    if lines := list(dict.fromkeys(filter(None, mistakes))):
        raise ConfigError(lines)


@cache
def _adapter(section: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(section)


def read_section(section: type, value: Any, at: str = "") -> dict[str, Any]:
    """Return the keys of the section at a key with all defaults, in plain values. Raises
    ``ConfigError``."""
    from pydantic import ValidationError

    value = _with_nulls(json.loads(json.dumps(value, default=str)))
    try:
        # Numbers and switches may be text, as on the command line.
        plain: dict[str, Any] = as_plain(_adapter(section).validate_python(value))
    except ValidationError as error:
        lines: dict[str, str] = {}
        for mistake in error.errors(include_url=False):
            key, words = _mistake(section, value, mistake)
            lines.setdefault(f"{at}{key}".removeprefix("."), words)
        raise ConfigError(f"{key}: {words}" for key, words in lines.items()) from None
    return plain


def _with_nulls(value: Any) -> Any:
    """Return a value with null for each key whose value is the text by which the command line hands
    it on."""
    if isinstance(value, dict):
        return {k: None if v in ("null", "~") else _with_nulls(v) for k, v in value.items()}
    return value


def _mistake(section: type, value: Any, mistake: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a mistake below the section, with a point before it, and what is wrong."""
    path, kind = "", mistake["type"]
    for key in mistake["loc"]:
        # Members of unions are no keys, and one that is missing is.
        if isinstance(value, list) and isinstance(key, int):
            path, value = f"{path}[{key}]", value[key]
        elif isinstance(value, dict) and (key in value or kind == "missing"):
            path, value = f"{path}.{key}", value.get(key)
    if kind == "missing":
        return path, "missing"
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return path, f"unknown key{suggestion(mistake['loc'][-1], _keys(section))}"
    words = mistake["msg"].removeprefix("Value error, ")
    # What a section says itself names its keys.
    got = display_url(value) if isinstance(value, str) else value
    return path, words if isinstance(value, dict) else f"{words} (got {json.dumps(got):.80})"


def _keys(section: type) -> Iterator[str]:
    """Yield the keys of a section and of those that it holds."""
    for key, hint in hints(section).items():
        yield key
        for inner in sections_in(hint):
            yield from _keys(inner)
