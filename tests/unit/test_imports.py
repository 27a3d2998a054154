"""Rooms of the core import from rooms before them; extras import the core, and nobody an extra."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from tests.support.imports import MODULES, PACKAGES, direct_imports, strings

LEVELS = (
    *({"errors", "rooms"}, {"io"}, {"config", "registry", "running"}, {"data"}, {"lm"}),
    *({"selection"}, {"unlearning"}, {"evaluation"}, {"evidence"}, {"figures"}, {"stages"}),
    *({"commands"}, {"cli"}, {"__main__"}),
)
"""Rooms of the core in the order of the data's way. `io` is before `config`, which checks paths."""
CORE = [name for name in MODULES if name.startswith("mamushi.")]
EXTRAS = [name for name in MODULES if name.startswith("mamushi_extras.")]
SNAKEMAKE = {"mamushi_runs", "snakemake", "snakemake_interface_executor_plugins"}


def level(module: str) -> int:
    """Return the place of a module's room among the rooms of the core."""
    return next(i for i, rooms in enumerate(LEVELS) if module.split(".")[1] in rooms)


@pytest.mark.parametrize("module", CORE)
def test_a_room_imports_from_rooms_before_it(module: str) -> None:
    # Also what it only names, in a text, to be imported at run time.
    modules = {*direct_imports(module), *strings(module)} & {*CORE}
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
