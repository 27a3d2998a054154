"""A finished piece of the small grid, and the commands that made it."""

import os
import re
import shlex

import pytest

from tests.support import small_grid as grid
from tests.support.made import Made
from tests.support.workflow import run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    run(*grid.FEW, directory=folder, config=grid.CONFIG)
    told = run(
        *grid.FEW, "--dry-run", "--forceall", "-p", directory=folder, config=grid.CONFIG
    ).stdout
    commands: dict[str, list[list[str]]] = {}
    rule = ""
    for line in told.splitlines():
        if found := re.match(r"\s*(?:local)?rule (\w+):$", line):
            rule = found[1]
        if found := re.search(r"python -m mamushi (.*) > \S+ 2>&1$", line):
            text = re.sub(r"\$\(dirname (\S+)\)", lambda m: os.path.dirname(m[1]), found[1])
            commands.setdefault(rule, []).append(shlex.split(text))
    single = {name: lines[0] for name, lines in commands.items() if len(lines) == 1}
    return Made(folder, single, grid.contents(folder / "results"))
