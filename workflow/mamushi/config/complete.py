"""From what the user wrote to a complete configuration: types, defaults, plug-ins, every mistake.

The declaration in ``sections`` and the ``Settings`` of the plug-ins say everything that is checked
one key at a time (``reading``); ``checks`` has the rest. All mistakes are told at once, a line
each, before anything runs. Nothing heavy is imported, since this runs whenever a Snakefile is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from mamushi.config import models, sections
from mamushi.config.checks import check_names, checks, of_texts, other_selectors
from mamushi.config.kinds import Section, as_plain
from mamushi.config.reading import ConfigError, read_section
from mamushi.errors import instead
from mamushi.registry import plugin, plugins

PLUGINS: Mapping[str, Callable[[], type[Section]]] = {
    "dataset": sections.dataset,
    "selector": lambda: sections.Selector,
    "unlearner": lambda: sections.Unlearner,
}
"""Kind of plug-in -> the keys that its definitions have beside the settings of the plug-in."""


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with types coerced, every default filled in and paths resolved.

    ``selectors`` then has every selector that the grid, a study or ``removal.ratio`` uses, with its
    ``kind`` and all settings; ``models.*.training`` is ``training`` with the model's own changes.
    A study says what it takes from the grid, and so do ``unlearning`` and ``probe``. An environment
    variable that is not set makes its whole path null. Raises ``ConfigError``.
    """
    mistakes: list[str] = []
    written = as_plain(config)
    full = read_section(sections.configuration(), written, "", mistakes)
    for kind in PLUGINS:
        for name, definition in _definitions(full, f"{kind}s").items():
            full[f"{kind}s"][name] = _read_plugin(kind, name, definition, mistakes)
    for name, model in _definitions(full, "models").items():
        sort, at = models.sort_of(model), f"models.{name}"
        full["models"][name] = read_section(sort, model, at, mistakes)
    _refuse(mistakes)
    if full["removal"]["ratio"] is None:
        full["removal"]["ratio"] = default_ratio(full)
    _add_plugins(full, mistakes)
    _fill_axes(full)
    _fill_training(full, written)
    for dataset in full["datasets"].values():
        dataset["sections"] = {k: v for k, v in dataset["sections"].items() if v > 0}
    # Whoever read the files has laid them over each other.
    del full["extends"]
    _refuse(check_names(full))
    _refuse(checks(full))
    return full


def _refuse(lines: Iterable[str]) -> None:
    if mistakes := list(dict.fromkeys(lines)):
        raise ConfigError(mistakes)


@cache
def plugin_section(kind: str, name: str) -> type[Section]:
    """Return the keys of a definition of a plug-in: those of its kind, and its settings."""
    settings = plugin(kind, name).section
    return sections.extended(PLUGINS[kind](), {}, () if settings is Section else (settings,))


def _definitions(full: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """Return the definitions in a section, as far as they have the right shape."""
    entries = full.get(section)
    pairs = entries.items() if isinstance(entries, dict) else ()
    return {name: entry for name, entry in pairs if isinstance(entry, dict)}


def _read_plugin(
    kind: str, name: str, definition: dict[str, Any], mistakes: list[str]
) -> dict[str, Any]:
    """Return a definition with the settings of its plug-in; a selector's or unlearner's has the
    definition's name unless it says another ``kind``."""
    at = f"{kind}s.{name}"
    default = {"kind": name} if kind != "dataset" and name in plugins(kind) else {}
    definition = default | definition
    of = definition.get("kind")
    if not isinstance(of, str) or of not in plugins(kind):
        wrong = "missing" if of is None else f"{of!r} is not allowed"
        mistakes.append(f"{at}.kind: {wrong}; {instead(of, plugins(kind))}")
        return definition
    return read_section(plugin_section(kind, of), definition, at, mistakes)


def default_ratio(full: Mapping[str, Any]) -> str:
    """Return the selector that estimates the ratio where the configuration names none: mamushi, or
    where the grid does without it the first of the grid's own that cross-fits texts, so that
    nothing is scored that nobody asked for."""
    names = full["grid"]["selectors"]
    for name in names if "mamushi" not in names else ():
        kind = full["selectors"].get(name, {"kind": name})["kind"]
        selector = plugins("selector").get(kind)
        if selector and "folds" in selector.settings and selector.unit == "texts":
            return name
    return "mamushi"


def _add_plugins(full: dict[str, Any], mistakes: list[str]) -> None:
    """Add a definition of each selector and unlearner that is asked for by the name of its kind, or
    that another selector derives from."""
    for kind in ("selector", "unlearner"):
        waiting = [*_named(full, f"{kind}s")]
        if kind == "selector":
            waiting += [full["removal"]["ratio"], *full["selectors"]]
        definitions = full[f"{kind}s"]
        for name in waiting:
            if name not in definitions and name in plugins(kind):
                definitions[name] = _read_plugin(kind, name, {}, mistakes)
            if kind == "selector" and name in definitions:
                bases = [base for _, base in other_selectors(definitions[name])]
                waiting += [base for base in bases if base not in waiting]


def _named(full: Mapping[str, Any], key: str) -> Iterator[str]:
    studies = (full["studies"] or {}).values()
    for axes in (
        full["grid"],
        *filter(None, studies),
        *(full[name] for name in sections.axes_sections()),
    ):
        yield from axes.get(key) or ()


def _fill_axes(full: dict[str, Any]) -> None:
    """Take what studies and sections with lists of their own leave out from the grid."""
    studies = full["studies"] or {}
    full["studies"] = {name: axes for name, axes in studies.items() if axes is not None}
    unlearning, grid = full["unlearning"], full["grid"]
    texts = {"selectors": of_texts(full, grid)["selectors"]}
    _lay_under(unlearning, grid | texts)
    _lay_under(full["probe"], unlearning | {"seeds": unlearning["seeds"][:1]})
    for axes in (*full["studies"].values(), *(full[name] for name in sections.axes_sections())):
        _lay_under(axes, grid)
    if unlearning["max_length"] is None:
        unlearning["max_length"] = full["tokens"]["max_length"]


def _lay_under(axes: dict[str, Any], lists: Mapping[str, Any]) -> None:
    axes |= {key: lists[key] for key in axes if axes[key] is None and key in lists}


def _fill_training(full: dict[str, Any], written: Mapping[str, Any]) -> None:
    """Lay what a model or an unlearner says of its training over what is said for all."""
    for section, shared in (
        ("models", full["training"]),
        ("unlearners", full["unlearning"]["training"]),
    ):
        for name, definition in full[section].items():
            changes = written.get(section, {}).get(name, {}).get("training") or {}
            definition["training"] = _laid_over(shared, definition.get("training", {}), changes)


def _laid_over(shared: Mapping[str, Any], values: Any, written: Any) -> dict[str, Any]:
    """Return the shared values, but of what is ``written`` the ``values`` that were read."""
    if not values:
        return as_plain(shared)
    return {
        key: _laid_over(value, values[key], written.get(key, {}))
        if isinstance(value, dict)
        else (values[key] if key in written else value)
        for key, value in shared.items()
    }
