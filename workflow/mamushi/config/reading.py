"""Values by their declared types: as the program takes them, and every mistake as a line.

Pydantic checks. Here is what it does not: text from the command line becomes a number, a switch or
null where no text is allowed, and a mistake is told by its key, its value, what is allowed and what
may have been meant. These are all words on types; ``checks`` has those on several keys.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import as_plain, meanings, section_at
from mamushi.errors import UserError, closest, instead
from mamushi.io.copies import display_url, is_remote

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

OF_THE_PAPER = ("grid", "datasets", "models")
"""Keys without a default that the paper's configuration has."""
NULLS = ("null", "~", "")
"""How the command line hands on null."""
UNKNOWN_KEY = ("unexpected_keyword_argument", "extra_forbidden")
YAML_WORDS = {
    "Value error, ": "",
    " after validation": "",
    r"a valid array": "a list",
    r"a valid integer.*": "a whole number",
    r"a (valid|finite) number.*": "a number",
    r"a valid string": "text",
    r"a valid boolean.*": "true or false",
    r"a (valid )?dictionary.*": "a mapping of keys to values",
}
"""Words of pydantic, as patterns -> those of a user of YAML."""


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
        path, kind, key = _path(value, mistake["loc"]), mistake["type"], mistake["loc"][-1:]
        key_at = _dotted(at, path)
        if "missing" in kind:
            meaning = meanings(section_at(section, path)).get(str(key[0]), "").rstrip(".")
            do = f"it has no default ({meaning})"
            if key[0] in OF_THE_PAPER:
                do = "write it, or `extends: paper` for what config.yaml says"
            lines[_dotted(at, [*path, *key])] = f"missing; {do}"
        elif kind in UNKNOWN_KEY:
            names = meanings(section_at(section, path[:-1]))
            lines[key_at] = f"unknown key; {instead(path[-1], names)}"
        elif key == ("[key]",):
            lines[key_at] = f"this name is not allowed; {_words(mistake, '')}"
        elif key_at in lines:
            # Of a union: what another of its members allows.
            lines[key_at] += f", or {_words(mistake, '')}"
        else:
            wrong = _at(value, path)
            # What a section says itself names its keys.
            is_section = kind == "value_error" and isinstance(wrong, dict)
            before = "" if is_section else f"{_as_written(wrong)} is not allowed; "
            lines[key_at] = before + _words(mistake, wrong)
    return [f"{key_at}: {words}" for key_at, words in lines.items()]


def _dotted(at: str, path: Iterable[str | int]) -> str:
    for key in path:
        at += f"[{key}]" if isinstance(key, int) else f".{key}"
    return at.removeprefix(".")


def _words(details: ErrorDetails, wrong: Any) -> str:
    """Return what is allowed in place of a wrong value, and what may have been meant."""
    choices = re.findall("'([^']*)'", details.get("ctx", {}).get("expected", ""))
    words = details["msg"].replace("Input should be", "it should be")
    for theirs, ours in YAML_WORDS.items():
        words = re.sub(theirs, ours, words)
    return f"{closest(wrong, choices)} {words[0].lower()}{words[1:]}".strip()


def _as_written(value: Any) -> str:
    """Return a value as a user would write it, shortened."""
    value = display_url(value) if is_remote(value) else value
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


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
