"""A small grid run twice: the forecast of the second run against what it takes, what both leave in
results/plan, and how many checkpoints lie on the disk meanwhile."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mamushi.artifacts.files import read_json
from mamushi.running import warm
from tests.support.demo import small
from tests.support.workflow import command, environment, plan, run

pytestmark = pytest.mark.slow

GATE = 0.4
"""Of the processor time. The demo is forecast within 30%; a grid of a minute on a machine that
others use is noisier, since the same job takes more of a processor whose caches it shares."""
RUNNING = 2


def science(**changes: Any) -> dict[str, Any]:
    """One seed, two selectors, two budgets: 35 jobs."""
    demo = small(epochs=1, learning_rate=2.0e-3)
    demo["grid"] |= {"selectors": ["random", "oracle"]}
    return demo | changes


class Ran(NamedTuple):
    """A run that has ended."""

    said: str
    cpu: float
    """Seconds, of the main process and all jobs."""
    wall: float


def ran(folder: Path, config: dict[str, Any], look: Callable[[], None] = lambda: None) -> Ran:
    """Run the grid with two jobs at a time; ``look`` is called meanwhile, again and again.

    As a user's run: every command imports its libraries itself, and counts as their process.
    """
    line = command("--cores", str(RUNNING), directory=folder, config=config)
    began = time.monotonic()
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(
            line, env=environment(**{warm.SWITCH: "off"}), stdout=said, stderr=subprocess.STDOUT
        )
        while True:
            pid, status, used = os.wait4(running.pid, os.WNOHANG)
            if pid:
                break
            look()
            # To walk through the results takes as long as this, of a processor that the jobs need.
            time.sleep(0.1)
    running.returncode = os.waitstatus_to_exitcode(status)
    text = (folder / "said.txt").read_text()
    assert running.returncode == 0, text
    return Ran(text, used.ru_utime + used.ru_stime, time.monotonic() - began)


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


class Twice(NamedTuple):
    folder: Path
    first: Ran
    plan: dict[str, Any]
    table: str
    second: Ran
    seen: list[Live]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    """The grid run, its results deleted but for logs and plans, planned, and run again with a
    checkpoint at every step."""
    folder = tmp_path_factory.mktemp("plan")
    config = science()
    first = ran(folder, config)
    for path in (folder / "results").iterdir():
        if path.is_file():
            path.unlink()
        elif path.name not in ("logs", "plan"):
            shutil.rmtree(path)
    shutil.rmtree(folder / ".snakemake")
    changes = ["--configfile", folder / "changes.yaml", "--cores", str(RUNNING)]
    said = plan("--json", folder / "plan.json", "--", *changes, directory=folder).stdout
    planned = json.loads((folder / "plan.json").read_text())
    seen: list[Live] = []
    # How to run is no part of what is run: the results are the same.
    config["execution"] = {"checkpoint_seconds": 0}
    second = ran(folder, config, lambda: seen.append(live(folder)))
    return Twice(folder, first, planned, said, second, seen)


def test_the_second_run_takes_the_processor_time_of_its_plan(twice: Twice) -> None:
    assert twice.plan["jobs"] == 37
    assert twice.plan["past_jobs"] >= 15
    sources = [source for rule in twice.plan["rules"].values() for source in rule["sources"]]
    assert all(source.startswith("measured") for source in sources)
    assert twice.plan["cpu_seconds"] == pytest.approx(twice.second.cpu, rel=GATE)


def test_the_plan_is_printed_with_what_it_is_from(twice: Twice) -> None:
    assert "measured [" in twice.table
    # On a machine that counts no GPUs, tiny models take none.
    assert twice.plan["gpu_seconds"] == 0


def test_a_run_begins_with_its_forecast_and_ends_with_what_became_of_it(twice: Twice) -> None:
    records = sorted((twice.folder / "results/plan").glob("*.json"))
    runs = ((twice.first, "without any past job"), (twice.second, "from "))
    for record, (done, source) in zip(map(read_json, records), runs, strict=True):
        begun = next(line for line in done.said.splitlines() if line.startswith("Forecast for"))
        assert "37 jobs" in begun and source in begun
        assert "Forecast against actual: 37 of 37 jobs done, 0 failed, " in done.said
        assert "No account of the run" not in done.said
        actual = record["actual"]
        assert actual["succeeded"] and actual["failed"] == 0
        assert actual["done"] == record["forecast"]["jobs"] == 37
        # All but what Snakemake still does after its hooks.
        assert actual["cpu_seconds"] == pytest.approx(done.cpu, rel=0.1)
        assert actual["wall_seconds"] < done.wall


def test_no_more_checkpoints_than_running_jobs_and_what_is_kept(twice: Twice) -> None:
    # One is there at every step, so that none seen would be a test that looked away.
    assert max(one.states for one in twice.seen) >= 1
    for one in twice.seen:
        assert one.states <= RUNNING
        assert one.retrained == 0
        assert one.kept <= 4
        # The next state is written beside the last one.
        assert one.files <= 2 * RUNNING + one.kept
    last = live(twice.folder)
    assert last == Live(states=0, files=4, kept=4, retrained=0)


def test_a_failed_run_is_accounted_for_and_no_measure_of_the_next(tmp_path: Path) -> None:
    config = science()
    config["datasets"]["synthetic"]["weights"] = {"forget": [1.0, 0.0], "retain": [0.0, 1.0]}
    config["training"]["learning_rate"] = 1.0e30
    said = run(directory=tmp_path, config=config, check=False)
    assert said.returncode != 0
    assert re.search(r"Forecast against actual: \d+ of 37 jobs done, 1 failed", said.stdout)
    record = read_json(next((tmp_path / "results/plan").glob("*.json")))
    assert record["actual"]["failed"] == 1
    assert not record["actual"]["succeeded"]
    assert 0 < record["actual"]["done"] < record["forecast"]["jobs"]


def test_a_forecast_that_fails_stops_no_run(tmp_path: Path) -> None:
    config = science()
    (tmp_path / "results").mkdir()
    # No folder can be made there.
    (tmp_path / "results/plan").write_text("in the way", encoding="utf-8")
    said = run("data", directory=tmp_path, config=config).stdout
    assert "No account of the run: " in said
    assert "Traceback" not in said
    assert (tmp_path / "results/data/synthetic/card.json").exists()
