"""What a stage takes from the configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any, Self

from pydantic import Field

from mamushi.config.kinds import Config, Section


def setting(source: str | Callable[..., Any], default: Any = ...) -> Any:
    """Return a field of settings: the value of a key of the configuration, by its dotted path with
    wildcards in braces, or what a function makes of the configuration and the wildcards that it
    names. ``default`` is for settings as they are written by hand."""
    return Field(default, json_schema_extra={"source": source})  # type: ignore[dict-item]


class Settings(Section):
    """The settings of a stage: each is a ``setting``, or the wildcard of its name."""

    @classmethod
    def of(cls, config: Config, **wildcards: Any) -> Self:
        """Return the settings of a job with these wildcards; of a section, the keys that its class
        here has. Raises ``ValidationError`` of pydantic for values of other types."""
        values = dict(wildcards)
        for name, field in cls.model_fields.items():
            extra: Any = field.json_schema_extra or {}
            source = extra.get("source")
            if isinstance(source, str):
                # A name may have a dot in it.
                values[name] = reduce(
                    getitem, (key.format(**wildcards) for key in source.split(".")), config
                )
            elif callable(source):
                names = inspect.signature(source).parameters.keys() & wildcards.keys()
                values[name] = source(config, **{name: wildcards[name] for name in names})
        return cls.model_validate(values, extra="ignore")
