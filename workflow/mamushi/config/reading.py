"""Values by their declared types: as the program takes them, and every mistake as a line.

Pydantic checks. Here is what it does not: text from the command line becomes a number, a switch or
null where no text is allowed, and a mistake is told by its key and value, in the words of pydantic.
Words on several keys are in ``checks``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import as_plain, hints, section_at
from mamushi.errors import UserError, instead
from mamushi.io.copies import display_url, is_remote

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

OF_THE_PAPER = ("grid", "datasets", "models")
"""Keys without a default that the paper's configuration has."""
NULLS = ("null", "~", "")
"""How the command line hands on null."""
UNKNOWN_KEY = ("unexpected_keyword_argument", "extra_forbidden")
VALUE_ERROR = "Value error, "
"""How a message of pydantic begins that is a function's own."""


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


def read_section(section: type, value: Any, at: str, mistakes: list[str]) -> dict[str, Any]:
    """Return the keys of a section with all defaults, in plain values, and add to ``mistakes``;
    where there are any the keys are as they were given."""
    from pydantic import ValidationError

    value = json.loads(json.dumps(value, default=str))
    while True:
        try:
            # Numbers and switches may be text, as on the command line.
            return as_plain(_adapter(section).validate_python(value))
        except ValidationError as error:
            details = error.errors(include_url=False)
        if not any([_read_null(value, _path(value, mistake["loc"])) for mistake in details]):
            mistakes += _lines(section, value, at, details)
            return value if isinstance(value, dict) else {}


def _read_null(value: Any, path: Sequence[str | int]) -> bool:
    """Put null where it stands as text, in place; tell whether it did."""
    is_null = bool(path) and _at(value, path) in NULLS
    if is_null:
        _at(value, path[:-1])[path[-1]] = None
    return is_null


def _path(value: Any, loc: Sequence[str | int]) -> list[str | int]:
    """Return the keys and indices on the way to a mistake, without members of unions, which are no
    keys; the last may be missing."""
    path: list[str | int] = []
    for key in loc:
        keys: Any = range(len(value)) if isinstance(value, list) else value
        if isinstance(value, dict | list) and key in keys:
            path.append(key)
            value = _at(value, [key])
    return path


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _lines(section: type, value: Any, at: str, details: Iterable[ErrorDetails]) -> list[str]:
    lines: dict[str, str] = {}
    for mistake in details:
        path, kind = _path(value, mistake["loc"]), mistake["type"]
        if "missing" in kind:
            key = mistake["loc"][-1]
            hint = "; or write `extends: paper` for what config.yaml says"
            lines[_dotted(at, [*path, key])] = f"missing{hint if key in OF_THE_PAPER else ''}"
        elif kind in UNKNOWN_KEY:
            names = hints(section_at(section, path[:-1]))
            lines[_dotted(at, path)] = f"unknown key; {instead(path[-1], names)}"
        else:
            wrong = _at(value, path)
            got = display_url(wrong) if is_remote(wrong) else wrong
            # What a section says itself names its keys.
            words = "" if isinstance(wrong, dict) else f" (got {json.dumps(got):.80})"
            lines.setdefault(_dotted(at, path), mistake["msg"].removeprefix(VALUE_ERROR) + words)
    return [f"{key_at}: {words}" for key_at, words in lines.items()]


def _dotted(at: str, path: Iterable[str | int]) -> str:
    for key in path:
        at += f"[{key}]" if isinstance(key, int) else f".{key}"
    return at.removeprefix(".")


def check_twice(files: Iterable[str | Path]) -> None:
    """Raise ``ConfigError`` with a line for each key that stands twice in one of these files, of
    which YAML keeps the last without a word."""
    import yaml

    lines: list[str] = []

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            first: dict[str, int] = {}
            for key, _ in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in first:
                    words = f"{name} stands there twice, first in line {first[name]}; keep one"
                    lines.append(f"{path}, line {line}: {words}")
                first.setdefault(name, line)
            return super().construct_mapping(node, deep)

    for path in files:
        # JSON with tabs, or a template: Snakemake has read it, and knows more of it.
        with contextlib.suppress(yaml.YAMLError, OSError, UnicodeError):
            yaml.load(Path(path).read_text(encoding="utf-8"), Loader)
    refuse(lines)
