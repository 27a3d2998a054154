"""Plug-ins by folder: a selector, unlearner, figure or dataset loader is one file, known by name.

A file is *read*, not imported, to learn what it offers: its docstring and the literals that it
assigns in capitals (``SETTINGS`` above all). So the Snakefile can list and check every plug-in
without paying for torch. ``load`` imports the one that a stage runs.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mamushi.errors import UserError

ROOT = Path(__file__).parent
FOLDERS = {
    "dataset": "data/loaders",
    "selector": "selection/selectors",
    "unlearner": "unlearning/unlearners",
    "figure": "figures/gallery",
}
"""Kind of plug-in -> its folder in the package."""
ENTRIES = {
    "dataset": ("load",),
    "selector": ("score", "BY_CHANCE", "DERIVES", "NEEDS_TRUTH", "READS_TEXTS"),
    "unlearner": ("loss", "STOPS", "REFERENCE", "RANDOM_LABELS", "SALIENCY"),
    "figure": ("draw",),
}
"""Kind of plug-in -> what a stage asks of it, by name: all that its digest covers. The settings
are not among it, since their values are handed over, nor what only the configuration reads."""


def tree() -> Path:
    """The folder of the Snakefile: that of the clone, or where an installation has put it."""
    clone = ROOT.parents[1]
    if (clone / "Snakefile").is_file():
        return clone
    return Path(sysconfig.get_path("data")) / "share" / "mamushi"


@dataclass(frozen=True)
class Plugin:
    """What a plug-in's file says about it. ``literals`` are its constants, by name."""

    kind: str
    name: str
    module: str
    summary: str
    literals: Mapping[str, Any]

    @property
    def settings(self) -> Mapping[str, Any]:
        """JSON Schema of each setting by name, each with ``default`` and ``description``."""
        return dict(self.literals.get("SETTINGS", {}))

    @property
    def defaults(self) -> dict[str, Any]:
        """The value of every setting that has a default."""
        return {key: rule["default"] for key, rule in self.settings.items() if "default" in rule}


@cache
def plugins(kind: str) -> Mapping[str, Plugin]:
    """All plug-ins of a kind, by name, in alphabetical order."""
    folder = ROOT / FOLDERS[kind]
    prefix = "mamushi." + FOLDERS[kind].replace("/", ".")
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        summary = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
        literals = {}
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id.isupper():
                # A constant that is computed is the module's own affair.
                with contextlib.suppress(ValueError):
                    literals[target.id] = ast.literal_eval(node.value)
        found[path.stem] = Plugin(kind, path.stem, f"{prefix}.{path.stem}", summary, literals)
    return found


def plugin(kind: str, name: str) -> Plugin:
    """The plug-in of that name. Raises ``UserError`` that lists the known ones."""
    known = plugins(kind)
    if name not in known:
        raise UserError(f"unknown {kind} {name!r}", do=f"known are: {', '.join(known)}")
    return known[name]


def load(kind: str, name: str) -> ModuleType:
    """Import a plug-in's module. Raises ``UserError`` for an unknown name."""
    return importlib.import_module(plugin(kind, name).module)
