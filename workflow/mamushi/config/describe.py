"""Every key of a section: its type, default and meaning, for the documentation and for messages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, get_args, get_type_hints

from mamushi.config.kinds import Section


@cache
def hints(section: type) -> dict[str, Any]:
    """Return the type of each key of a section."""
    types = get_type_hints(section, include_extras=True)
    return {key.name: types[key.name] for key in fields(section)}


def sections_in(hint: Any) -> list[type[Any]]:
    """Return the sections that a type holds."""
    if isinstance(hint, type) and issubclass(hint, Section):
        return [hint]
    return [section for part in get_args(hint) for section in sections_in(part)]


def section_at(section: type, path: Sequence[str | int]) -> type:
    """Return the section at a path, on which indices and names of the user's are no keys."""
    for key in path:
        inner = sections_in(hints(section).get(str(key)))
        section = inner[0] if inner else section
    return section


@cache
def meanings(section: type) -> Mapping[str, str]:
    """Return what each key of a section means: the comment ``#:`` at the key or above it, else the
    docstring of the section that it holds."""
    words: dict[str, str] = {}
    for name, hint in hints(section).items():
        inner = sections_in(hint)
        words[name] = " ".join(inspect.cleandoc(inner[0].__doc__ or "").split()) if inner else ""
    for base in reversed(section.__mro__[: section.__mro__.index(Section)]):
        above: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.partition("#: ")[2]
            if (match := re.match(r"    (\w+): ", line)) and match[1] in words:
                words[match[1]] = " ".join([*above, text]).strip() or words[match[1]]
                above = []
            elif text:
                above.append(text)
    return words
