"""A finished piece of the small grid, and the commands that made it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import small_grid as grid
from tests.support.workflow import ROOT, environment, run, warmed

EXECUTION = {
    "micro_batch_size": 32,
    "batch_tokens": 16384,
    "checkpoint_seconds": 600,
    # As the workflow does by default: states computed in other batches have other last bits.
    "cache_trunk": True,
}


@dataclass
class Made:
    """A folder in which the workflow has made one cell of the grid and all that it needs."""

    folder: Path
    commands: dict[str, list[str]]
    """Arguments of ``python -m mamushi`` by rule, of the rules of which there is one job."""
    contents: dict[str, str]

    def copy(self, folder: Path, *without: str) -> Made:
        """The same in another folder, times of the files too, without these paths."""
        copied = Path(shutil.copytree(self.folder, folder))
        for path in without:
            (copied / path).unlink()
        return Made(copied, self.commands, self.contents)

    def start(
        self,
        rule: str,
        wrapper: str = "",
        log: str = "log",
        *,
        cold: bool = False,
        **execution: Any,
    ) -> subprocess.Popen[str]:
        """Start a rule's command. A ``wrapper`` is Python to run before, in the same process.

        With ``cold``, that is the process that is returned; else one that it passes signals to.
        """
        line = [sys.executable, "-m", "mamushi"]
        if wrapper:
            main = "from mamushi.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
            line = [sys.executable, "-c", f"{wrapper}\n{main}"]
        env = (environment if cold else warmed)(
            PYTHONPATH=str(ROOT / "workflow"),
            MAMUSHI_EXECUTION=json.dumps(EXECUTION | execution),
        )
        with (self.folder / log).open("w") as handle:
            return subprocess.Popen(
                [*line, *self.commands[rule]],
                cwd=self.folder,
                env=env,
                stdout=handle,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def said(self, log: str = "log") -> str:
        return (self.folder / log).read_text()

    def differs(self) -> list[str]:
        """The results that are not what they were, among those that are there."""
        now = grid.contents(self.folder / "results")
        return [name for name in self.contents if now.get(name) != self.contents[name]]


@pytest.fixture(autouse=True)
def told_to_end() -> Iterator[None]:
    """Where pytest runs in the background or under `nohup`, it ignores some signals to end, and so
    would all that it starts."""
    default = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {each: signal.signal(each, handler) for each, handler in default.items()}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


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
        if found := re.match(r"(?:local)?rule (\w+):$", line):
            rule = found[1]
        if found := re.search(r"python -m mamushi (.*) > \S+ 2>&1$", line):
            text = re.sub(r"\$\(dirname (\S+)\)", lambda m: os.path.dirname(m[1]), found[1])
            commands.setdefault(rule, []).append(shlex.split(text))
    single = {name: lines[0] for name, lines in commands.items() if len(lines) == 1}
    return Made(folder, single, grid.contents(folder / "results"))
