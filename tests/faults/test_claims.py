"""The same output wanted twice: one command computes, the other waits and keeps the result."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from mamushi.io import paths
from tests.support import small_grid as grid
from tests.support.audit import Audit, output
from tests.support.disk import fill, small_disk
from tests.support.made import OUTPUTS, RETRAINED, Made, sending, steps_in
from tests.support.processes import until
from tests.support.small_grid import RUN
from tests.support.workflow import run

pytestmark = pytest.mark.slow

KEPT = "made from the same already; kept as it is"
STATE = f"{RETRAINED}.state"
GONE = OUTPUTS | {
    "embed": [f"{RUN}/embeddings.parquet"],
    "base_model": [f"results/base/{grid.MODEL}/card.json"],
}


@pytest.mark.parametrize("rule", ["retrain", "contaminate", "embed", "base_model"])
def test_started_twice_one_computes_and_the_other_keeps_the_result(
    made: Made, tmp_path: Path, rule: str
) -> None:
    copied = made.copy(tmp_path / "run", *GONE[rule])
    with Audit(copied.folder) as audit:
        two = [copied.start(rule, log=f"log{number}", cold=True) for number in range(2)]
        assert [one.wait() for one in two] == [0, 0]
    said = sorted((copied.said(f"log{number}") for number in range(2)), key=lambda log: KEPT in log)
    assert [KEPT in log for log in said] == [False, True]
    assert "waiting for" in said[1] and "which writes the same results/" in said[1]
    assert copied.differs() == []
    assert audit.doubles == {}
    assert {what for what, _ in audit.waits} == {output(made.commands[rule])}
    assert [*(copied.folder / paths.CLAIMS).iterdir()] == []


def test_who_waits_for_one_that_is_killed_goes_on_from_its_state(
    made: Made, tmp_path: Path
) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    first = copied.start("retrain", sending(), "first", cold=True, checkpoint_seconds=0)
    until((copied.folder / STATE).exists)
    second = copied.start("retrain", sending(), "second", checkpoint_seconds=0)
    until(lambda: "waiting for" in copied.said("second"))
    assert f"pid {first.pid}" in copied.said("second")
    assert steps_in(copied.said("second")) == 0
    first.kill()
    assert first.wait() == -signal.SIGKILL
    assert second.wait() == 0
    assert KEPT not in copied.said("second")
    total = int(json.loads((copied.folder / RETRAINED).read_text())["steps"])
    computed = steps_in(copied.said("first")) + steps_in(copied.said("second"))
    # But for the steps between the last checkpoint and the kill: one and a part of the next.
    assert total <= computed <= total + 2
    assert copied.differs() == []


def test_outputs_that_are_deleted_while_the_rest_is_computed_are_made_again(
    made: Made, tmp_path: Path
) -> None:
    """A restarted Snakemake deletes the outputs that an orphan has written so far."""
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    deletes = (
        "import os\nfrom mamushi.lm import perplexity\nmeasure = perplexity.text_nll\n"
        "def text_nll(*args, **named):\n"
        f"    os.unlink({OUTPUTS['retrain'][0]!r})\n"
        "    return measure(*args, **named)\n"
        "perplexity.text_nll = text_nll\n"
    )
    assert copied.start("retrain", deletes).wait() == 0
    assert not (copied.folder / OUTPUTS["retrain"][0]).exists()
    assert copied.start("retrain").wait() == 0
    assert copied.differs() == []


def test_a_full_disk_once_and_the_same_command_again(made: Made, tmp_path: Path) -> None:
    results = tmp_path / "run" / "results"
    with small_disk(results, megabytes=8):
        copied = tmp_path / "run"
        shutil.copytree(made.folder, copied, dirs_exist_ok=True)
        for path in OUTPUTS["retrain"]:
            (copied / path).unlink()
        fill(results, leave=2**14)
        config = grid.CONFIG | {"execution": {"checkpoint_seconds": 0}}
        done = run(*grid.FEW, directory=copied, config=config, check=False)
        assert done.returncode != 0
        assert "no space left" in done.stdout
        assert "Traceback" not in done.stdout
        now = grid.contents(results)
        assert [name for name in now if now[name] != made.contents.get(name, now[name])] == []
        (results / "filler").unlink()
        run(*grid.FEW, directory=copied, config=config)
        assert grid.contents(results) == made.contents
        assert not (results / "claims").exists()
        assert [*results.rglob("*.part"), *results.rglob("*.state")] == []


def test_who_forces_a_job_to_run_has_it_computed(made: Made, tmp_path: Path) -> None:
    copied = made.copy(tmp_path / "run", *OUTPUTS["retrain"])
    assert copied.start("retrain").wait() == 0
    first = (copied.folder / RETRAINED).stat().st_ino
    # Under another name it lives on, so that no new file gets its number.
    os.link(copied.folder / RETRAINED, tmp_path / "first")
    run(grid.FEW[0], "--forcerun", "retrain", directory=copied.folder, config=grid.CONFIG)
    assert (copied.folder / RETRAINED).stat().st_ino != first
    assert copied.differs() == []
