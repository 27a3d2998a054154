"""Plug-ins by folder: a selector, unlearner, figure or dataset loader is one file, known by name.

A file is *read*, not imported, to learn what it offers: its docstring and the literals that it
assigns in capitals, ``SETTINGS`` above all, in which names stand for literals that it imports from
another module. So the Snakefile can list and check every plug-in without paying for torch. ``load``
imports the one that a stage runs.
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

from mamushi.errors import UserError, suggestion

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
    "selector": (
        *("score", "BY_CHANCE", "DERIVES", "NEEDS_TRUTH", "READS_TEXTS", "READS_TOKENS"),
        "score_tokens",
    ),
    "unlearner": ("loss", "STOPS", "RANDOM_LABELS", "SALIENCY"),
    "figure": ("draw",),
}
"""Kind of plug-in -> what a stage asks of it, by name: all that its digest covers. The settings
are not among it, since their values are handed over, nor what only the configuration reads."""


def tree() -> Path:
    """Return the Snakefile's folder: the clone, or where an installation has put it."""
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
        """Return each setting's JSON Schema by name, with ``default`` and ``description``."""
        return dict(self.literals.get("SETTINGS", {}))

    @property
    def defaults(self) -> dict[str, Any]:
        """Return the value of every setting that has a default."""
        return {key: rule["default"] for key, rule in self.settings.items() if "default" in rule}


@cache
def plugins(kind: str) -> Mapping[str, Plugin]:
    """Return all plug-ins of a kind, by name, in alphabetical order."""
    found = {}
    # Those of rooms beside the core lie in folders of the same name.
    beside = ROOT.parent.glob(f"{ROOT.name}_extras/*/{Path(FOLDERS[kind]).name}/[!_]*.py")
    files = [*(ROOT / FOLDERS[kind]).glob("[!_]*.py"), *beside]
    for path in sorted(files, key=lambda path: path.stem):
        tree, name = ast.parse(path.read_text(encoding="utf-8")), path.stem
        summary = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        found[name] = Plugin(kind, name, module, summary, _literals(tree))
    return found


def _literals(tree: ast.Module) -> dict[str, Any]:
    """Return the constants of a module by name, but for those that it computes."""
    imported = {
        alias.name: node.module or ""
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id.isupper():
                value = node.value
                if target.id == "SETTINGS":
                    value = _Shared(imported).visit(value)
                with contextlib.suppress(ValueError):
                    found[target.id] = ast.literal_eval(value)
    return found


class _Shared(ast.NodeTransformer):
    """Puts constants of other modules in the place of the names under which they are imported."""

    def __init__(self, imported: Mapping[str, str]) -> None:
        self.imported = imported

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_constants(self.imported[node.id])[node.id])


@cache
def _constants(module: str) -> dict[str, Any]:
    path = Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")
    return _literals(ast.parse(path.read_text(encoding="utf-8")))


def plugin(kind: str, name: str) -> Plugin:
    """Return the plug-in of that name. Raises ``UserError`` that lists the known ones."""
    known = plugins(kind)
    if name not in known:
        what = f"unknown {kind} {name!r}{suggestion(name, known)}"
        raise UserError(what, do=f"known are: {', '.join(known)}")
    return known[name]


def load(kind: str, name: str) -> ModuleType:
    """Import a plug-in's module. Raises ``UserError`` for an unknown name."""
    return importlib.import_module(plugin(kind, name).module)
