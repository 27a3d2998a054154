"""A tracker of the user's own is told of every step, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import read_table
from mamushi.cli import main
from mamushi.running import tracking
from tests.support import unlearning
from tests.support.models import TRAINING
from tests.support.stage_files import EXECUTION, FILES, write_base
from tests.support.steps import Killed, kill_at

CELL = {"dataset": "d", "model": "m", "seed": 0, "arm": "gold"}
SETTINGS = {
    "dataset": "d",
    "model": "m",
    "seed": 0,
    "role": "gold",
    "section": "inference",
    "domains": ["retain"],
    "training": TRAINING,
    "code": "c",
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_ALLOW_FILE_STORE"):
        # So that what the program sets is gone after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return tmp_path


def train(root: Path, results: str, tracker: str | None) -> int:
    written = {"log-table": paths.TRAIN_LOG, "card": paths.CARD, "tensors": paths.TRAINED}
    given = {k: paths.under(root / results, pattern, **CELL) for k, pattern in written.items()}
    given |= {name: root / FILES[name] for name in ("examples", "tokens", "model-card")}
    return main(
        [
            "finetune",
            *(f"--{name}={path}" for name, path in given.items()),
            f"--execution={json.dumps(EXECUTION | {'tracking': tracker})}",
            f"--settings={json.dumps(SETTINGS)}",
        ]
    )


def written(root: Path, results: str) -> tuple[str, Any, list[float]]:
    """Tensors, card and losses: all but the times."""
    tensors = paths.under(root / results, paths.TRAINED, **CELL).read_bytes()
    log = read_table(paths.under(root / results, paths.TRAIN_LOG, **CELL), schemas.TRAIN_LOG)
    card = read_json(paths.under(root / results, paths.CARD, **CELL))
    return hashlib.sha256(tensors).hexdigest(), card, log["loss"].to_pylist()


def mlflow_steps(folder: Path) -> dict[str, list[tuple[int, float]]]:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow import MlflowClient

    client = MlflowClient(folder.as_uri())
    (project,) = [e for e in client.search_experiments() if e.name == "mamushi"]
    runs = client.search_runs([project.experiment_id])
    assert {run.info.run_name for run in runs} == {"d/m/seed0/gold"}
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert runs[0].data.params["learning_rate"] == "0.01"
    names = runs[0].data.metrics
    return {
        name: sorted(
            (each.step, each.value)
            for run in runs
            for each in client.get_metric_history(run.info.run_id, name)
        )
        for name in names
    }


def tensorboard_steps(
    folder: Path, run: str = "d/m/seed0/gold"
) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / run))
    events.Reload()
    names = events.Tags()["scalars"]
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in names}


READ = {"mlflow": mlflow_steps, "tensorboard": tensorboard_steps}


@pytest.mark.parametrize("tracker", READ)
def test_it_is_told_every_step_and_changes_nothing(
    made: Path, monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    pytest.importorskip(tracker)
    assert train(made, "plain", None) == 0
    assert not (made / "plain/tracking").exists()
    # Killed in its third step, and gone on with.
    with monkeypatch.context() as killing:
        kill_at(killing, 3)
        with pytest.raises(Killed):
            train(made, "told", tracker)
    assert train(made, "told", tracker) == 0
    assert written(made, "told") == written(made, "plain")
    losses = written(made, "told")[2]
    steps = READ[tracker](made / "told/tracking")
    assert steps.keys() == {"loss", "learning_rate", "perplexity"}
    assert [step for step, _ in steps["loss"]] == list(range(1, len(losses) + 1))
    assert [value for _, value in steps["loss"]] == pytest.approx(losses, rel=1e-6)
    perplexity = [math.exp(loss) for loss in losses]
    assert [value for _, value in steps["perplexity"]] == pytest.approx(perplexity, rel=1e-6)


def test_it_is_told_of_unlearning_by_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    arm = "neggrad_plus/lists/mine"
    card = paths.under(tmp_path / "results", paths.CARD, **{**CELL, "arm": arm})
    state = card.with_name("card.json.state")
    state.parent.mkdir(parents=True)
    plain, _ = unlearning.run("neggrad_plus", total=3)
    monkeypatch.setitem(unlearning.EXECUTION, "tracking", "tensorboard")
    told, outcome = unlearning.run("neggrad_plus", total=3, state=state)
    ours, theirs = unlearning.weights(told), unlearning.weights(plain)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    name = f"d/m/seed0/{arm}"
    steps = tensorboard_steps(tmp_path / "results/tracking", name)
    assert [step for step, _ in steps["loss"]] == [1, 2, 3]
    for domain in ("forget", "retain"):
        wanted = [math.exp(loss) for loss in outcome.log[f"{domain}_loss"]]
        assert [v for _, v in steps[f"{domain}_perplexity"]] == pytest.approx(wanted, rel=1e-6)


def test_one_that_fails_is_left_out(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    assert train(made, "plain", None) == 0
    capsys.readouterr()
    from accelerate.tracking import TensorBoardTracker

    told: list[int] = []

    def broken(self: object, values: object, step: int, **_: object) -> None:
        told.append(step)
        raise ConnectionError("no route\nto it")

    monkeypatch.setattr(TensorBoardTracker, "log", broken)
    assert train(made, "told", "tensorboard") == 0
    assert told == [1]
    said = capsys.readouterr().err
    assert said.count("the tracker fails, and is left out from here on: no route to it") == 1
    assert written(made, "told") == written(made, "plain")


def test_one_that_is_not_installed_is_one_line(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda name: None)
    assert train(made, "told", "wandb") == 2
    assert "execution.tracking: wandb is not installed here" in capsys.readouterr().err
