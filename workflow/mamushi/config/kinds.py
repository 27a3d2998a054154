"""The types of which the sections of the configuration are declared, with their bounds in the words
of JSON Schema.

Beyond these there are ``allowed`` and ``missing``, which say in error messages what a value may be
and what to do where there is none, ``format: path``, for values in which environment variables are
resolved, and ``part``, for a section of which some keys are changed.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

from msgspec import Meta


def such(**words: Any) -> Meta:
    """Return what bounds a type, in words of JSON Schema."""
    return Meta(extra_json_schema=words)


NAMED = "a name of letters, digits, '.', '_' and '-' that starts with a letter or a digit"
COMMIT = "a commit of 40 hexadecimal digits (no branch or tag, since those move), or null"
DISTINCT = such(uniqueItems=True)
SOME = such(minItems=1, uniqueItems=True)
ANY = such(minProperties=1)
PART = such(part=True)
WRITE = such(missing="write it, or `extends: paper` for what config.yaml says")

Natural = Annotated[int, such(minimum=0)]
Seed = Annotated[int, such(minimum=0, maximum=2**32 - 1)]
Count = Annotated[int, such(minimum=1)]
Length = Annotated[int, such(minimum=2)]
Positive = Annotated[float, such(exclusiveMinimum=0)]
NotNegative = Annotated[float, such(minimum=0)]
Share = Annotated[float, such(minimum=0, maximum=1)]
SomeShare = Annotated[float, such(exclusiveMinimum=0, maximum=1)]
Below = Annotated[float, such(minimum=0, exclusiveMaximum=1)]
Fraction = Annotated[float, such(exclusiveMinimum=0, exclusiveMaximum=1)]
Budget = Annotated[Fraction, such(multipleOf=0.000001)]
Budgets = Annotated[list[Budget], SOME]
Seeds = Annotated[list[Seed], SOME]
Name = Annotated[str, such(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", allowed=NAMED)]
Names = Annotated[list[Name], SOME]
AnyNames = Annotated[list[Name], DISTINCT]
Counts = Annotated[list[Count], SOME]
Fractions = Annotated[list[Fraction], SOME]
Decays = Annotated[list[Below], such(minItems=2, maxItems=2)]
Place = Annotated[str, such(format="path")]
Commit = Annotated[str, such(pattern="^[0-9a-f]{40}$", allowed=COMMIT)]
Precision = Literal["bf16", "fp32"]
SectionName = Literal["contamination", "inference", "evaluation"]


def listed(*items: Any) -> Any:
    """Return a field whose default is a list of these items."""
    return field(default_factory=lambda: list(items))


def named(**entries: Any) -> Any:
    """Return a field whose default is a mapping of these entries."""
    return field(default_factory=lambda: dict(entries))


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """Keys that stand together. Every subclass is a frozen dataclass; one with ``further`` keys has
    some that are declared elsewhere."""

    further: ClassVar[bool] = False
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, further: bool = False) -> None:
        cls.further = further
        dataclass(frozen=True, kw_only=True)(cls)
