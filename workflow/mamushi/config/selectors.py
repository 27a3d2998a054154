"""What the configuration and the plug-ins say together of the selectors."""

from typing import Any

from mamushi.config.kinds import Config
from mamushi.registry import Plugin, plugin, plugin_settings


def kind_of(config: Config, selector: str) -> Plugin:
    """Return the plug-in of a selector by the name that the configuration gives it."""
    return plugin("selector", config["selectors"][selector]["kind"])


def ranks_tokens(config: Config, selector: str) -> bool:
    """Return whether a selector ranks tokens, which are masked, and not texts."""
    return kind_of(config, selector).unit == "tokens"


def text_axes(config: Config, axes: Config, tokens: bool = False) -> dict[str, Any]:
    """Return the lists of values that a grid goes through, its ``axes``, such as ``datasets`` and
    ``seeds``. Of its ``selectors`` only those stay that rank texts or, with ``tokens``, tokens."""
    names = [name for name in axes["selectors"] if ranks_tokens(config, name) == tokens]
    return {**axes, "selectors": names}


def grid_selectors(config: Config, tokens: bool = False) -> list[str]:
    """Return the grid's selectors that rank texts, or ``tokens``."""
    return list(text_axes(config, config["grid"], tokens)["selectors"])


def random_selectors(config: Config) -> dict[str, bool]:
    """Return of every selector of the grid whether it ranks texts by chance."""
    return {name: kind_of(config, name).by_chance for name in config["grid"]["selectors"]}


def derivation_chain(config: Config, selector: str) -> list[str]:
    """Return a selector, the one that it derives from, and so on, until one comes back."""
    links = [selector]
    while (base := parent_of(config, links[-1])) is not None and base not in links:
        links.append(base)
    return links


def parent_of(config: Config, selector: str) -> str | None:
    """Return the selector whose scores this one is derived from, if any."""
    key = kind_of(config, selector).derives
    base: str | None = config["selectors"][selector][key] if key else None
    return base


def measured_table(config: Config, selector: str) -> str | None:
    """Return the table, a pattern, of what a model says of tokens, by which a selector ranks, if it
    does: the model of the cell, or its judge."""
    pattern, judge = kind_of(config, selector).measured, config["selectors"][selector].get("judge")
    return pattern.replace("{model}", judge) if pattern and judge else pattern


def scores_both(config: Config, selector: str) -> bool:
    """Return whether a selector gives texts of both domains a score."""
    kinds = [kind_of(config, link) for link in derivation_chain(config, selector)]
    return kinds[0].unit == "texts" and all(kind.retain_scores for kind in kinds)


def is_refitted(config: Config, selector: str) -> bool:
    """Return whether a selector's scores are made again with other seeds."""
    if config["evidence"]["refits"]["whole"] == 0:
        return False
    return all(kind_of(config, link).refits for link in derivation_chain(config, selector))


def selector_settings(config: Config, selector: str) -> dict[str, Any]:
    """Return a selector's settings as the configuration has them."""
    return plugin_settings("selector", config["selectors"][selector])


def why_baseline(config: Config, selector: str) -> str | None:
    """Return why lists of a selector are there for comparison alone; None for any other."""
    words = kind_of(config, selector).comparison
    return words and words.format(**config["selectors"][selector])


def leading_first(config: Config) -> list[str]:
    """Return the grid's selectors of texts, first the one whose lists are to be acted on: that of
    the ratio, else the first that is not there for comparison alone."""
    ratio = config["removal"]["ratio"]
    names = grid_selectors(config) or [ratio]
    leading = min(names, key=lambda name: (name != ratio, why_baseline(config, name) is not None))
    return sorted(names, key=lambda name: name != leading)
