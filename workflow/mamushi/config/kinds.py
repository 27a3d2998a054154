"""The types of which the sections of the configuration are declared.

Bounds are those of ``annotated_types``; what they cannot say is a ``Through``. Pydantic reads both
when a configuration is checked. It is not imported before, since every job imports sections.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from annotated_types import Ge, Gt, Le, Len, Lt, MultipleOf

from mamushi.errors import UserError
from mamushi.io import copies

Config = Mapping[str, Any]
"""A configuration, or a part of one, as ``complete`` makes it."""


@dataclass(frozen=True, eq=False)
class Through:
    """A function that a value goes through after its type is checked, or ``before``. It raises
    ``ValueError`` with what is allowed; ``schema`` says the same in the words of JSON Schema."""

    function: Callable[[Any], Any]
    before: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core.core_schema import (
            no_info_after_validator_function,
            no_info_before_validator_function,
        )

        if self.before:
            return no_info_before_validator_function(self.function, handler(source))
        return no_info_after_validator_function(self.function, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(schema) | dict(self.schema)


def matching(pattern: str, words: str) -> Through:
    """Return the check of text by a pattern."""

    def check_text(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"allowed is {words}")
        return text

    return Through(check_text, schema={"pattern": f"^{pattern}$"})


def refuse_repeats(values: list[Any]) -> list[Any]:
    """Return the values. Raises ``ValueError`` if one stands there twice."""
    if len(values) > len(set(values)):
        raise ValueError("each entry may stand there once")
    return values


def refuse_switch(value: Any) -> Any:
    """Return the value. Raises ``ValueError`` for a switch, which pydantic takes for 1 or 0."""
    if isinstance(value, bool):
        raise ValueError("it should be a number")
    return value


def unless_null(value: Any) -> Any:
    """Return None for the text ``null``, as which the command line hands on null."""
    return None if value in ("null", "~", "") else value


def resolve_path(path: Any) -> Any:
    """Return ``path`` with ``~`` and environment variables resolved; None if one is not set.

    Spelled in one way (no double or trailing slashes), since another spelling would look like
    another file. Raises ``ValueError`` for braces, which Snakemake takes for a wildcard, and for a
    URL as ``copies.unsigned``.
    """
    if not isinstance(path, str) or unless_null(path) is None:
        return unless_null(path)
    variables = re.findall(r"\$(?:\{(\w+)\}|(\w+))", path)
    if any(not os.environ.get(braced or bare) for braced, bare in variables):
        return None
    expanded = os.path.expanduser(os.path.expandvars(path))
    if copies.is_remote(expanded):
        try:
            return copies.unsigned(expanded)
        except UserError as error:
            raise ValueError(f"it {error.problem}; {error.do}") from None
    resolved = os.path.normpath(expanded)
    if "{" in resolved or "}" in resolved:
        raise ValueError("what stands in braces is a wildcard to Snakemake; give another path")
    return resolved


NAMED = "a name of letters, digits, '.', '_' and '-' that starts with a letter or a digit"
COMMIT = "a commit of 40 hexadecimal digits (no branch or tag, since those move), or null"
SOME = Len(1)
DISTINCT = Through(refuse_repeats, schema={"uniqueItems": True})
UNLESS_NULL = Through(unless_null, before=True)
RESOLVED = Through(resolve_path, before=True)
NO_SWITCH = Through(refuse_switch, before=True)

Natural = Annotated[int, Ge(0), NO_SWITCH]
Seed = Annotated[int, Ge(0), Le(2**32 - 1), NO_SWITCH]
Count = Annotated[int, Ge(1), NO_SWITCH]
Length = Annotated[int, Ge(2), NO_SWITCH]
Positive = Annotated[float, Gt(0), NO_SWITCH]
NotNegative = Annotated[float, Ge(0), NO_SWITCH]
Portion = Annotated[float, Ge(0), Le(1), NO_SWITCH]
SomeShare = Annotated[float, Gt(0), Le(1), NO_SWITCH]
Below = Annotated[float, Ge(0), Lt(1), NO_SWITCH]
Fraction = Annotated[float, Gt(0), Lt(1), NO_SWITCH]
Budget = Annotated[float, Gt(0), Lt(1), MultipleOf(0.000001), NO_SWITCH]
Budgets = Annotated[list[Budget], SOME, DISTINCT]
Seeds = Annotated[list[Seed], SOME, DISTINCT]
Name = Annotated[str, matching("[A-Za-z0-9][A-Za-z0-9._-]*", NAMED)]
Names = Annotated[list[Name], SOME, DISTINCT]
AnyNames = Annotated[list[Name], DISTINCT]
SomeCounts = Annotated[list[Count], SOME, DISTINCT]
Fractions = Annotated[list[Fraction], SOME, DISTINCT]
Depths = Annotated[list[SomeShare], DISTINCT]
Decays = Annotated[list[Below], Len(2, 2)]
TextOrNull = Annotated[str | None, UNLESS_NULL]
NameOrNull = Annotated[Name | None, UNLESS_NULL]
Commit = Annotated[Annotated[str, matching("[0-9a-f]{40}", COMMIT)] | None, UNLESS_NULL]
Place = Annotated[str, RESOLVED]
PlaceOrNull = Annotated[str | None, RESOLVED]
Precision = Literal["bf16", "fp32"]
SectionName = Literal["contamination", "inference", "evaluation"]
Definitions = dict[Name, dict[str, Any]]


def listed(*items: Any) -> Any:
    """Return a field whose default is a list of these items."""
    return field(default_factory=lambda: list(items))


def named(**entries: Any) -> Any:
    """Return a field whose default is a mapping of these entries."""
    return field(default_factory=lambda: dict(entries))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class Section:
    """Keys that stand together. Every subclass is a frozen dataclass; a comment ``#:`` at a key or
    above it says what the key means. A ``sparse`` one is written without keys that are None."""

    sparse: ClassVar[bool] = False

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def as_plain(value: Any) -> Any:
    """Return a copy of a value of the configuration in dicts, with text for keys, and lists."""
    if isinstance(value, Section):
        values = {key.name: as_plain(getattr(value, key.name)) for key in fields(value)}
        return {key: x for key, x in values.items() if x is not None or not value.sparse}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, list | tuple) else value


def defaults(section: type[Section]) -> dict[str, Any]:
    """Return the default of every key that has one."""
    values = {
        key.name: key.default if key.default_factory is MISSING else key.default_factory()
        for key in fields(section)
    }
    return {name: as_plain(value) for name, value in values.items() if value is not MISSING}


# What a section says, for the documentation and for messages -------------------------------------


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
