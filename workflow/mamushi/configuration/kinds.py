"""The types of which the sections of the configuration are declared.

Beyond the words of JSON Schema there are ``allowed`` and ``missing``, which say in error messages
what a value may be and what to do where there is none, ``format: path``, for values in which
environment variables are resolved, and ``PART``.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

from msgspec import Meta

NAMED = Meta(
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)",
    extra_json_schema={
        "allowed": "a name of letters, digits, '.', '_' and '-' that starts with a letter or a "
        "digit"
    },
)
DISTINCT = Meta(extra_json_schema={"uniqueItems": True})
SOME = Meta(min_length=1)
PART = Meta(extra={"part": True})
"""Marks a section of which some keys are changed: those that are left out stay out."""
WRITE = Meta(
    extra_json_schema={"missing": "write it, or `extends: paper` for what config.yaml says"}
)

Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Length = Annotated[int, Meta(ge=2)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Fraction = Annotated[float, Meta(gt=0, lt=1)]
Budget = Annotated[Fraction, Meta(extra_json_schema={"multipleOf": 0.01})]
Budgets = Annotated[list[Budget], SOME, DISTINCT]
Seeds = Annotated[list[Natural], SOME, DISTINCT]
Name = Annotated[str, NAMED]
Names = Annotated[list[Name], SOME, DISTINCT]
AnyNames = Annotated[list[Name], DISTINCT]
Counts = Annotated[list[Count], SOME, DISTINCT]
Fractions = Annotated[list[Fraction], SOME, DISTINCT]
Decays = Annotated[list[Annotated[float, Meta(ge=0, lt=1)]], Meta(min_length=2, max_length=2)]
Place = Annotated[str, Meta(extra_json_schema={"format": "path"})]
Commit = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{40}$",
        extra_json_schema={
            "allowed": "a commit of 40 hexadecimal digits (no branch or tag, since those move), or "
            "null"
        },
    ),
]
Precision = Literal["bf16", "fp32"]
Steps = Literal["by_data", "matched"]
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
