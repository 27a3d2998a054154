"""What a configuration is declared with: sections, what rooms add, types of keys, lines of
mistakes; and settings, which are what a stage takes of it."""

import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import getitem
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from annotated_types import Ge, Gt, Le, Len, Lt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mamushi.errors import UserError, suggestion

# It would read the metadata of every installed package in search of them, as each job starts.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

NO_PATH = "no path is given, or its environment variable is not set"
Config = Mapping[str, Any]
"""A configuration, or a section of one, as ``complete`` makes it."""


class Section(BaseModel):
    """Keys that stand together. One that has a default is a ``key``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def key(default: Any, meaning: str) -> Any:
    """Return the declaration of a key: its default, and what it means to a reader."""
    return Field(default, description=meaning)


class Added(NamedTuple):
    """What a room beside the core adds: keys by their dotted paths, each with type and default,
    what yields a line for each mistake of a completed configuration, and what makes of a place of
    data how results name it, and of that where it lies here."""

    keys: Mapping[str, tuple[Any, Any]] = {}
    check: Callable[[Config], Iterable[str]] = lambda full: ()
    name: Callable[[str], str] = str
    local: Callable[[str], str] = str


def _refuse_repeats(values: list[Any]) -> list[Any]:
    if len(values) > len(set(values)):
        raise ValueError("each entry may stand there once")
    return values


def resolve_path(path: Any) -> Any:
    """Return a path with ``~`` and environment variables resolved, None if one is not set; a URL is
    left to rooms. Raises ``ValueError`` for braces, Snakemake's wildcards."""
    if not isinstance(path, str) or not path:
        return path or None
    if not all(map(os.environ.get, re.findall(r"\$\{?(\w+)", path))):
        return None
    expanded = os.path.expanduser(os.path.expandvars(path))
    if "://" in expanded:
        return expanded
    if "{" in expanded or "}" in expanded:
        raise ValueError("what stands in braces is a wildcard to Snakemake; give another path")
    return os.path.normpath(expanded)


SOME = Len(1)
DISTINCT = AfterValidator(_refuse_repeats)
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
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
AnyNames = Annotated[list[Name], DISTINCT]
Names = Annotated[AnyNames, SOME]
SomeTexts = Annotated[list[Annotated[str, SOME]], SOME, DISTINCT]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Place = Annotated[str, RESOLVED]
PlaceOrNull = Annotated[str | None, RESOLVED]
Precision = Literal["bf16", "fp32"]
Domain = Literal["forget", "retain"]
SectionName = Literal["contamination", "inference", "evaluation"]
Definitions = dict[Name, dict[str, Any]]


def refuse(mistakes: Iterable[str | None]) -> None:
    """Raise ``UserError`` with a line for each mistake, if there is one."""
    if lines := dict.fromkeys(" ".join(line.split()) for line in mistakes if line):
        error = UserError(next(iter(lines)))
        error.args = ("\n".join(lines),)
        raise error


def read_section(section: type[Section], config: Any, at: str = "") -> dict[str, Any]:
    """Return the keys of the section at a key with all defaults, in plain values. Numbers, switches
    and null may be text, as on the command line. Raises ``UserError`` as ``refuse``."""
    config = json.loads(
        json.dumps(config, default=str),
        object_hook=lambda keys: {k: None if v in ("null", "~") else v for k, v in keys.items()},
    )
    try:
        return section.model_validate(config).model_dump()
    except ValidationError as error:
        refuse(_mistake_line(section, at, mistake) for mistake in error.errors(include_url=False))
        raise


def _mistake_line(section: type[Section], at: str, mistake: Mapping[str, Any]) -> str:
    """Return the message on a mistake that pydantic found at a key of a section."""
    steps = [step for step in mistake["loc"] if step != "[key]"]
    below = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    words = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] == "extra_forbidden":
        schema = section.model_json_schema()
        every = (schema, *schema.get("$defs", {}).values())
        names = [name for one in every for name in one.get("properties", ())]
        words = f"unknown key{suggestion(steps[-1], names)}"
    elif not isinstance(mistake["input"], dict | Section):
        words += f" (got {json.dumps(mistake['input']):.80})"
    return f"{at}{below}: {words}".removeprefix(".")


def setting(source: str | Callable[..., Any], default: Any = ...) -> Any:
    """Return a field of settings: the value of a key of the configuration, by its dotted path with
    wildcards in braces, or what a function makes of the configuration and the wildcards that it
    names. ``default`` is for settings as they are written by hand."""
    return Field(default, json_schema_extra={"source": source})  # type: ignore[dict-item]


class Settings(Section):
    """The settings of a stage: each is a ``setting``, or the wildcard of its name. ``PLUGIN`` is
    the kind of plug-in that the stage loads, if any, and the setting with its name; a setting
    ``rooms`` names further modules."""

    PLUGIN: ClassVar[tuple[str, str] | None] = None

    @classmethod
    def of(cls, config: Config, **wildcards: Any) -> Self:
        """Return the settings of a job with these wildcards; of a section, the keys that its class
        here has. Raises ``ValidationError`` of pydantic for values of other types."""
        settings = dict(wildcards)
        for name, field in cls.model_fields.items():
            extra: Any = field.json_schema_extra or {}
            if isinstance(source := extra.get("source"), str):
                # A name may have a dot in it.
                steps = [step.format(**wildcards) for step in source.split(".")]
                settings[name] = reduce(getitem, steps, config)
            elif source:
                names = inspect.signature(source).parameters.keys() & wildcards.keys()
                settings[name] = source(config, **{key: wildcards[key] for key in names})
        return cls.model_validate(settings, extra="ignore")
