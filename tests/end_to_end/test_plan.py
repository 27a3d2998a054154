"""A small grid: its forecast, and how many checkpoints lie on the disk meanwhile."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.demo import small
from tests.support.workflow import command, environment, run

pytestmark = pytest.mark.slow

RUNNING = 2


def science(**changes: Any) -> dict[str, Any]:
    """One seed, two selectors, two budgets: 35 jobs."""
    demo = small(epochs=1, learning_rate=2.0e-3)
    demo["grid"] |= {"selectors": ["random", "oracle"]}
    return demo | changes


def ran(folder: Path, config: dict[str, Any], look: Callable[[], None]) -> str:
    """Run the grid with two jobs at a time, and return what it said; ``look`` is called meanwhile,
    again and again."""
    line = command("--cores", str(RUNNING), directory=folder, config=config)
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(line, env=environment(), stdout=said, stderr=subprocess.STDOUT)
        while running.poll() is None:
            look()
            # To walk through the results takes as long as this, of a processor that the jobs need.
            time.sleep(0.1)
    text = (folder / "said.txt").read_text()
    assert running.returncode == 0, text
    return text


class Live(NamedTuple):
    """Weights on the disk at one moment."""

    states: int
    """Checkpoints, of which a job has one, whole or in writing."""
    files: int
    """Inodes with states, parts of them, and trained tensors."""
    kept: int
    """Trained tensors of endpoints, which are outputs."""
    retrained: int


def live(folder: Path) -> Live:
    """What lies there at once: seen in one walk, and still there after it."""
    found = []
    for path in (folder / "results").rglob("*"):
        name = path.name
        written = name.endswith(".state") or (name.startswith(".") and ".state." in name)
        if written or name.endswith("trained.safetensors"):
            found.append(path)
    inodes: dict[int, Path] = {}
    for path in found:
        try:
            # Finished outputs may have a second name.
            inodes[path.stat().st_ino] = path
        except FileNotFoundError:
            continue
    tensors = [path for path in inodes.values() if path.name == "trained.safetensors"]
    states = {
        path.name.lstrip(".").partition(".state")[0] + str(path.parent)
        for path in inodes.values()
        if path not in tensors
    }
    retrained = [path for path in tensors if "retrained" in path.parts]
    kept = len(tensors) - len(retrained)
    return Live(len(states), len(inodes), kept, len(retrained))


def test_a_grid_has_a_forecast_and_few_checkpoints_at_a_time(tmp_path: Path) -> None:
    seen: list[Live] = []
    # One is there at every step, so that none seen would be a test that looked away.
    config = science(execution={"checkpoint_seconds": 0})
    said = ran(tmp_path, config, lambda: seen.append(live(tmp_path)))
    assert "Forecast for 37 jobs: about " in said
    assert "37 of 37 jobs done, 0 failed, in " in said
    assert "No account of the run" not in said
    assert max(one.states for one in seen) >= 1
    for one in seen:
        assert one.states <= RUNNING
        assert one.retrained == 0
        assert one.kept <= 4
        # The next state is written beside the last one.
        assert one.files <= 2 * RUNNING + one.kept
    assert live(tmp_path) == Live(states=0, files=4, kept=4, retrained=0)


def test_a_failed_run_is_accounted_for(tmp_path: Path) -> None:
    config = science()
    config["datasets"]["synthetic"]["weights"] = {"forget": [1.0, 0.0], "retain": [0.0, 1.0]}
    config["training"]["learning_rate"] = 1.0e30
    said = run(directory=tmp_path, config=config, check=False)
    assert said.returncode != 0
    assert re.search(r"\d+ of 37 jobs done, 1 failed", said.stdout)
