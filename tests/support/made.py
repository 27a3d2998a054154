"""A finished piece of the small grid, and the commands that made it, to disturb and run again."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.support import small_grid as grid
from tests.support.small_grid import RUN, UNLEARNER
from tests.support.workflow import ROOT, environment, warmed

RETRAINED = f"{RUN}/arms/retrained/lr_cos/beta0.25/card.json"
WHOLE = f"{RUN}/arms/{UNLEARNER}/whole/card.json"


# Trained tensors are temporary, but for those of the endpoints.
OUTPUTS = {
    "retrain": [RETRAINED, RETRAINED.replace("card.json", "train_log.parquet")],
    "unlearn_whole": [WHOLE, WHOLE.replace("card.json", "train_log.parquet")],
}
EXECUTION = {
    "micro_batch_size": 32,
    "batch_tokens": 16384,
    "checkpoint_seconds": 600,
}
SEND = """
# Counts the steps, and sends a signal in the middle of some.
import os, signal
from mamushi.lm import training
count = 0
def counted(function):
    def call(*args):
        global count
        count += 1
        print("computes step", count, flush=True)
        for each in SIGNALS.get(count, []):
            os.kill(os.getpid(), each)
        return function(*args)
    return call
training.gradient = counted(training.gradient)
"""


def sending(**signals: list[signal.Signals]) -> str:
    """A wrapper that sends signals in steps of its process, counted from 1: ``step7=[SIGTERM]``."""
    given = {int(step.removeprefix("step")): list(map(int, s)) for step, s in signals.items()}
    return f"SIGNALS = {given}\n{SEND}"


def steps_in(log: str) -> int:
    return log.count("computes step")


@dataclass
class Made:
    """A folder in which the workflow has made one cell of the grid and all that it needs."""

    folder: Path
    commands: dict[str, list[str]]
    """Arguments of ``python -m mamushi`` by rule, of the rules of which there is one job."""
    contents: dict[str, str]

    def copy(self, folder: Path, *without: str) -> Self:
        """The same in another folder, times of the files too, without these paths."""
        copied = Path(shutil.copytree(self.folder, folder))
        for path in without:
            (copied / path).unlink()
        return type(self)(copied, self.commands, self.contents)

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
            # As the workflow does: states computed in other batches have other last bits.
            MAMUSHI_TRUNKS=json.dumps("results/cache/trunks"),
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
