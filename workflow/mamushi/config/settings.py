"""What a stage takes from the configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import reduce
from operator import getitem
from typing import Any, Self

from mamushi.config.kinds import Config, Section


def setting(source: str | Callable[..., Any], **default: Any) -> Any:
    """Return a field of settings: the value of a key of the configuration, by its dotted path with
    wildcards in braces, or what a function makes of the configuration and the wildcards that it
    names. ``default`` is for settings as they are written by hand."""
    return field(metadata={"source": source}, **default)


class Settings(Section):
    """The settings of a stage: each is a ``setting``, or the wildcard of its name."""

    @classmethod
    def of(cls, config: Config, **wildcards: Any) -> Self:
        """Return the settings of a job with these wildcards. Raises ``msgspec.ValidationError`` for
        values of other types."""
        import msgspec

        sources = {key.name: key.metadata.get("source") for key in fields(cls)}
        values = {name: _value(at, config, wildcards) for name, at in sources.items() if at}
        return msgspec.convert(wildcards | values, cls)


def _value(source: str | Callable[..., Any], config: Config, wildcards: Mapping[str, Any]) -> Any:
    if isinstance(source, str):
        # A name may have a dot in it.
        path = (key.format(**wildcards) for key in source.split("."))
        return reduce(getitem, path, config)
    names = inspect.signature(source).parameters.keys() & wildcards.keys()
    return source(config, **{name: wildcards[name] for name in names})
