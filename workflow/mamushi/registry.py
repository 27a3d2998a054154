"""What is found by its folder: commands, stages, plug-ins, and what extras add to the core.

A plug-in is a selector, unlearner, figure, dataset loader or format: one file, known by name. It
says what it offers: the docstring, the class ``Settings`` of its settings, and flags, constants in
capitals, which are fields of ``Plugin``. The Snakefile imports all plug-ins, so that they import
what is heavy (numpy, torch, matplotlib) inside their functions; a long one does its work in
``_NAME.py`` beside it.

An extra is a room beside the core, a folder of ``mamushi_extras``, in which its commands, stages,
rules and plug-ins lie as those of the core do; the core runs without any. Its module ``adds`` may
have these, each called at its point:

``config``: keys of the configuration, a check of it and places of data, a ``config.kinds.Added``.
``reading_steps(settings)``: what a room does in reading a table with these settings, by name:
``read(settings)``, then ``divide``, ``mark`` and ``answer(raw, settings)``; none for other tables.
``pool_step(pool, metadata, column)``: the pool that is ranked, with what the room knows of it.
``removal_list(removal)``: a removal list as it is to be applied.
``join_passes(model, ...)``: makes the passes of a model faster, or reads what it predicts in them,
see ``stages._models``.
``start_page(root, configfiles)``: writes the page of a results folder, and returns its file.
"""

import difflib
import importlib
import inspect
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mamushi.config.kinds import Section
from mamushi.errors import UserError, choices

PACKAGES = Path(__file__).parents[1]
PLUGIN_FOLDERS = {
    "dataset": "loaders",
    "selector": "selectors",
    "unlearner": "unlearners",
    "figure": "gallery",
    "format": "formats",
}
"""Kind of plug-in -> the name of its folders, in rooms of all packages."""


def tree() -> Path:
    """Return the Snakefile's folder: the clone, or where an installation has put it."""
    clone = PACKAGES.parent
    if (clone / "Snakefile").is_file():
        return clone
    return Path(sysconfig.get_path("data")) / "share" / "mamushi"


def find_files(*patterns: str) -> list[Path]:
    """Return the files of all packages that have these patterns, by their names."""
    files = (path for pattern in patterns for path in PACKAGES.glob(pattern))
    return sorted(files, key=lambda path: (path.stem, path))


def import_file(path: Path) -> ModuleType:
    """Return the module of a file of the packages."""
    return importlib.import_module(".".join(path.relative_to(PACKAGES).with_suffix("").parts))


@dataclass(frozen=True)
class Plugin:
    """What a plug-in's file says about it; a flag is a constant of its name in capitals."""

    kind: str
    name: str
    code: ModuleType

    # Selectors.
    unit: str = "texts"  # what it ranks: texts or tokens
    by_chance: bool = False
    comparison: str | None = None  # why its lists are there for comparison alone
    retain_scores: bool = True  # whether it scores retain texts as well
    reads_texts: bool = False
    measured: str | None = None  # the table of what a model says of tokens, by which it ranks
    derives: str | None = None  # the setting with the selector whose scores it needs
    refits: bool = True  # whether another seed makes its scores again without another training

    # Dataset loaders.
    files: Mapping[str, list[str]] = field(default_factory=dict)  # setting with a path -> names
    beside: tuple[str, ...] = ()  # settings with further files, which need not be there
    downloads: bool = False  # does without a path
    evaluation_section: bool = False  # brings an evaluation section
    knows_truth: bool = False  # has the log-density ratio

    # Unlearners.
    trains: bool = True  # takes steps by its `loss`; else it has `edit` and `lay_over`
    stops: str | None = None  # the setting with the forget loss at which it stops
    random_labels: bool = False
    saliency: str | None = None  # the setting with the share of weights that stay
    start_nll: bool = False  # needs the NLL of the forget texts under the start model

    # Figures.
    of: str = ""  # cell, grid, evidence or unlearning
    reads: tuple[str, ...] = ()  # the tables that it draws

    @property
    def summary(self) -> str:
        """Return the first paragraph of its docstring."""
        return (inspect.getdoc(self.code) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def section(self) -> type[Section]:
        """Return the class of its settings."""
        return getattr(self.code, "Settings", Section)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return its settings by name."""
        return self.section.model_fields

    @property
    def defaults(self) -> dict[str, Any]:
        """Return the value of every setting that has a default."""
        return self.section.model_construct().model_dump()


@cache
def plugins(kind: str) -> Mapping[str, Plugin]:
    """Return all plug-ins of a kind, by name, in alphabetical order. Raises ``TypeError`` for a
    misspelt flag."""
    flags, by_name = [key.name.upper() for key in fields(Plugin)], {}
    for path in find_files(f"mamushi*/*/{PLUGIN_FOLDERS[kind]}/[!_]*.py"):
        code = import_file(path)
        constants = {name: value for name, value in vars(code).items() if name.isupper()}
        for name in constants.keys() - {*flags}:
            if meant := difflib.get_close_matches(name, flags, 1, 0.8):
                raise TypeError(f"{code.__name__}: {name} is no flag; {meant[0]} is")
        stated = {name.lower(): constants[name] for name in flags if name in constants}
        by_name[path.stem] = Plugin(kind, path.stem, code, **stated)
    return by_name


def plugin(kind: str, name: str) -> Plugin:
    """Return the plug-in of that name. Raises ``UserError`` that lists all names."""
    if name not in plugins(kind):
        raise UserError(f"unknown {kind} {name!r}", do=choices(name, plugins(kind)))
    return plugins(kind)[name]


def plugin_settings(kind: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a plug-in, out of its definition in the configuration."""
    return {key: definition[key] for key in plugin(kind, definition["kind"]).settings}


@cache
def _rooms() -> list[ModuleType]:
    """Return the module ``adds`` of every room, a package of additions beside the core."""
    return [import_file(path) for path in find_files("mamushi_*/*/adds.py")]


def additions(point: str) -> list[Any]:
    """Return what the rooms add at a point."""
    return [getattr(module, point) for module in _rooms() if hasattr(module, point)]


def reading_modules(*datasets: Mapping[str, Any]) -> list[str]:
    """Return the names of room modules with a step in reading any of these ``datasets``. Their code
    counts as code of every file that is made from the texts."""
    readers = [module for module in _rooms() if hasattr(module, "reading_steps")]
    return [module.__name__ for module in readers if any(map(module.reading_steps, datasets))]
