"""Rooms of the package import from rooms before them, and no module from itself through others."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

import pytest

from tests.support.imports import MODULES, directly

LEVELS = (
    *({"errors", "registry"}, {"io"}, {"config", "running"}, {"data"}, {"lm"}),
    *({"selection"}, {"unlearning"}, {"evaluation"}, {"evidence"}, {"figures"}, {"stages"}),
    *({"api", "commands", "cli"}, {"__main__"}),
)
PACKAGE = "mamushi"
"""What is in its ``__init__`` any room may read."""
NAMES = [name for name in MODULES if name != PACKAGE]


def room(module: str) -> int:
    """Return the level of a module's room."""
    return next(i for i, rooms in enumerate(LEVELS) if module.split(".")[1] in rooms)


@pytest.mark.parametrize("module", NAMES)
def test_a_room_imports_from_rooms_before_it(module: str) -> None:
    later = {each for each in directly(module) if each in NAMES and room(each) > room(module)}
    assert not later


def test_no_module_imports_itself_through_others() -> None:
    # A package is imported before its modules; that it imports some of them is no circle.
    graph = {
        name: {each for each in directly(name) if each in NAMES and not name.startswith(each)}
        for name in NAMES
    }
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_nothing_that_jobs_run_knows_snakemake(module: str) -> None:
    around = {each.partition(".")[0] for each in directly(module)}
    assert not around & {"mamushi_runs", "snakemake", "snakemake_interface_executor_plugins"}
    # Nor does it name a module of another room that only an import at run time would find.
    texts = (n.value for n in ast.walk(ast.parse(MODULES[module].read_bytes())) if constant(n))
    named = {text for text in texts if text in NAMES}
    assert not {each for each in named if room(each) > room(module)}


def constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
