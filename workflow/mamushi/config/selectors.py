"""What the configuration and the plug-ins say together of the selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mamushi.config.checks import of_texts, of_tokens
from mamushi.registry import Plugin, plugin

Config = Mapping[str, Any]


def kind_of(config: Config, selector: str) -> Plugin:
    """Return the plug-in of a selector by the name that the configuration gives it."""
    return plugin("selector", config["selectors"][selector]["kind"])


def selector_settings(config: Config, selector: str) -> dict[str, Any]:
    """Return a selector's settings as the configuration has them, with those of networks that it
    names: another setting of those is another ranking."""
    definition, kind = config["selectors"][selector], kind_of(config, selector)
    settings = {key: definition[key] for key in kind.settings}
    key = kind.networks
    if key and settings[key] is not None:
        settings[key] = selector_settings(config, settings[key])
    return settings


def derives(config: Config, selector: str) -> str | None:
    """Return the selector whose scores this one is derived from, if any."""
    key = kind_of(config, selector).derives
    return str(config["selectors"][selector][key]) if key else None


def reads_layers(config: Config, selector: str) -> bool:
    """Tell whether a selector reads the texts at other depths than that of the embedding."""
    key = kind_of(config, selector).depths
    return key is not None and any(depth != 1 for depth in config["selectors"][selector][key])


def by_chance(config: Config) -> dict[str, bool]:
    """Return of every selector of the grid whether it ranks texts by chance."""
    names = config["grid"]["selectors"]
    return {name: kind_of(config, name).by_chance for name in names}


def reads_words(config: Config) -> list[str]:
    """Return the grid's selectors that rank the tokens of texts."""
    return [name for name in config["grid"]["selectors"] if of_tokens(config, name)]


def comparison(config: Config, selector: str) -> str | None:
    """Return why lists of a selector are there for comparison alone; None for any other."""
    words = kind_of(config, selector).comparison
    return words and words.format(**config["selectors"][selector])


def leading_first(config: Config) -> list[str]:
    """Return the grid's selectors of texts, first the one whose lists are to be acted on: that of
    the ratio, else the first that is not there for comparison alone."""
    ratio = config["removal"]["ratio"]
    names = of_texts(config, config["grid"])["selectors"] or [ratio]
    no_comparison = [name for name in names if comparison(config, name) is None]
    leading = ratio if ratio in names else next(iter(no_comparison or names))
    return [leading, *(name for name in names if name != leading)]
