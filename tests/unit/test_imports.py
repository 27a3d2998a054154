"""Rooms of the core import from rooms before them; extras import the core, and nobody an extra."""

import ast
import importlib.util
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.support.workflow import ROOT

WORKFLOW = ROOT / "workflow"
PACKAGES = ("mamushi", "mamushi_curate", "mamushi_extras", "mamushi_cluster")
MODULES = {
    ".".join(path.relative_to(WORKFLOW).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((WORKFLOW / package).rglob("*.py"))
}

LEVELS = (
    *({"errors"}, {"io"}, {"config", "registry", "running"}, {"data"}, {"lm"}),
    *({"selection"}, {"unlearning"}, {"evaluation"}, {"evidence"}, {"figures"}, {"stages"}),
    *({"commands"}, {"cli"}, {"__main__"}),
)
"""Rooms of the core in the order of the data's way. `io` is before `config`, which checks paths."""
CORE = [name for name in MODULES if name.startswith("mamushi.")]
EXTRAS = [name for name in MODULES if name.startswith("mamushi_extras.")]
SNAKEMAKE = {"mamushi_cluster", "snakemake", "snakemake_interface_executor_plugins"}


@cache
def direct_imports(module: str) -> set[str]:
    """Return the full names that a module imports, at its top or within its functions."""
    path, names = MODULES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return names


def texts(module: str) -> set[str]:
    """Return the texts that a module holds: it may import what they name when it runs."""
    nodes = ast.walk(ast.parse(MODULES[module].read_bytes()))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def level(module: str) -> int:
    """Return the place of a module's room among the rooms of the core."""
    return next(i for i, rooms in enumerate(LEVELS) if module.split(".")[1] in rooms)


@pytest.mark.parametrize("module", CORE)
def test_a_room_imports_from_rooms_before_it(module: str) -> None:
    # Also what it only names, in a text, to be imported at run time.
    modules = {*direct_imports(module), *texts(module)} & {*CORE}
    assert not {name for name in modules if level(name) > level(module)}


@pytest.mark.parametrize("module", [*CORE, *EXTRAS])
def test_the_core_knows_no_extra_and_neither_knows_snakemake(module: str) -> None:
    packages = {name.partition(".")[0] for name in direct_imports(module)}
    assert not packages & SNAKEMAKE
    assert module in EXTRAS or not packages & {"mamushi_curate", "mamushi_extras"}


def test_no_module_imports_itself_through_others() -> None:
    # A package is imported before its modules; that it imports some of them is no circle.
    names = MODULES.keys() - {*PACKAGES}
    graph = {
        module: {name for name in direct_imports(module) & names if not module.startswith(name)}
        for module in names
    }
    TopologicalSorter(graph).prepare()
