"""The types of which the sections of the configuration are declared. Pydantic checks values by
them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform, get_args, get_type_hints

from annotated_types import Ge, Gt, Le, Len, Lt
from pydantic import AfterValidator, BeforeValidator, StringConstraints

from mamushi.errors import UserError
from mamushi.io import copies

Config = Mapping[str, Any]
"""A configuration, or a part of one, as ``complete`` makes it."""


def refuse_repeats(values: list[Any]) -> list[Any]:
    """Return the values. Raises ``ValueError`` if one stands there twice."""
    if len(values) > len(set(values)):
        raise ValueError("each entry may stand there once")
    return values


def resolve_path(path: Any) -> Any:
    """Return ``path`` with ``~`` and environment variables resolved; None if one is not set.

    Spelled in one way (no double or trailing slashes), since another spelling would look like
    another file. Raises ``ValueError`` for braces, which Snakemake takes for a wildcard, and for a
    URL as ``copies.unsigned``.
    """
    if not isinstance(path, str) or not path:
        return path or None
    variables = re.findall(r"\$\{?(\w+)", path)
    if not all(map(os.environ.get, variables)):
        return None
    expanded = os.path.expanduser(os.path.expandvars(path))
    if copies.is_remote(expanded):
        try:
            return copies.unsigned(expanded)
        except UserError as error:
            raise ValueError(f"it {error.problem}; {error.do}") from None
    if "{" in expanded or "}" in expanded:
        raise ValueError("what stands in braces is a wildcard to Snakemake; give another path")
    return os.path.normpath(expanded)


SOME = Len(1)
DISTINCT = AfterValidator(refuse_repeats)
RESOLVED = BeforeValidator(resolve_path)

Natural = Annotated[int, Ge(0)]
Seed = Annotated[int, Ge(0), Le(2**32 - 1)]
Count = Annotated[int, Ge(1)]
Length = Annotated[int, Ge(2)]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Portion = Annotated[float, Ge(0), Le(1)]
SomeShare = Annotated[float, Gt(0), Le(1)]
Below = Annotated[float, Ge(0), Lt(1)]
Fraction = Annotated[float, Gt(0), Lt(1)]
Budget = Annotated[float, Gt(0), Lt(1), AfterValidator(lambda value: round(value, 6))]
Budgets = Annotated[list[Budget], SOME, DISTINCT]
Seeds = Annotated[list[Seed], SOME, DISTINCT]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Names = Annotated[list[Name], SOME, DISTINCT]
AnyNames = Annotated[list[Name], DISTINCT]
SomeCounts = Annotated[list[Count], SOME, DISTINCT]
Decays = Annotated[list[Below], Len(2, 2)]
Commit = Annotated[str, StringConstraints(pattern="^[0-9a-f]{40}$")]
Place = Annotated[str, RESOLVED]
PlaceOrNull = Annotated[str | None, RESOLVED]
Precision = Literal["bf16", "fp32"]
SectionName = Literal["contamination", "inference", "evaluation"]
Words = Annotated[list[str], SOME, DISTINCT]
Domains = Annotated[list[Literal["forget", "retain"]], SOME, DISTINCT]
VectorsPath = Annotated[
    str, StringConstraints(pattern=r"\.(parquet|pq|safetensors)$|^(.*/)?[^/.]+$")
]
Definitions = dict[Name, dict[str, Any]]
TENTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


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
    above it says what the key means, to readers and to the documentation. A ``sparse`` one is
    written without keys that are None."""

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
