"""What a training tells a tracker of the user's own: MLflow, Weights & Biases or TensorBoard.

It goes through accelerate, is off unless ``execution.tracking`` names one, and has no part in what
is computed: a tracker that fails is left out, and the training goes on.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from mamushi.artifacts import paths
from mamushi.errors import UserError

PROJECT = "mamushi"
LARGEST = 700.0
"""Loss in nats whose exponential a float still holds."""


@contextmanager
def tracked(
    accelerator: Accelerator, tracker: str | None, state: Path | None, settings: Mapping[str, Any]
) -> Iterator[None]:
    """Let ``log`` write to the tracker within the block, as a run with the name of the folder in
    which the checkpoint ``state`` lies; without one a training is nobody's to look at.

    Raises ``UserError`` for a tracker that is not installed.
    """
    if tracker is None or state is None:
        yield
        return
    if importlib.util.find_spec(tracker) is None:
        raise UserError(
            f"{tracker} is not installed here",
            where="execution.tracking",
            do="install it where the workflow runs, or set it to null",
        )
    folder, run = _named(state.with_name("card.json"))
    folder.mkdir(parents=True, exist_ok=True)
    if tracker == "mlflow" and "MLFLOW_TRACKING_URI" not in os.environ:
        # Files, since many jobs write at a time; MLflow has to be told that they are wanted.
        os.environ["MLFLOW_TRACKING_URI"] = folder.absolute().as_uri()
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    accelerator.log_with = [tracker]
    accelerator.project_configuration.logging_dir = str(folder)
    # TensorBoard names a run by its folder; the others have projects with runs in them.
    project = run if tracker == "tensorboard" else PROJECT
    named = {"mlflow": {"run_name": run}, "wandb": {"name": run}}
    about = dict(_flat(settings, ""))
    with _left_out(accelerator):
        try:
            accelerator.init_trackers(project, about, named)
        except Exception:
            # Another job may have made the project at the same moment: now it is there.
            accelerator.trackers = []
            accelerator.init_trackers(project, about, named)
    try:
        yield
    finally:
        with _left_out(accelerator):
            # Not `end_training`, which ends the group of processes that measure the model next.
            for each in accelerator.trackers:
                each.finish()
        accelerator.trackers = []


def log(accelerator: Accelerator, row: Mapping[str, float], losses: tuple[str, ...]) -> None:
    """Tell a step, if there is a tracker: its losses, learning rate and perplexity.

    The perplexity is that of the step's texts, exp of a loss in nats per token: of ``loss`` where
    that is the only one, else of each loss of a domain.
    """
    if not accelerator.trackers:
        return
    values = {name: row[name] for name in (*losses, "learning_rate")}
    for name in losses if len(losses) == 1 else losses[1:]:
        key = name.replace("loss", "perplexity")
        values[key] = math.exp(row[name]) if row[name] < LARGEST else math.inf
    with _left_out(accelerator):
        accelerator.log(values, step=int(row["step"]))


@contextmanager
def _left_out(accelerator: Accelerator) -> Iterator[None]:
    """Leave out a tracker that fails within the block, after one message."""
    try:
        yield
    except Exception as error:
        accelerator.trackers = []
        said = " ".join(str(error).split())
        print(f"the tracker fails, and is left out from here on: {said}", file=sys.stderr)


def _named(card: Path) -> tuple[Path, str]:
    """Return the folder for logs of its own, and the run: ``dataset/model/seed0/gold``."""
    if found := paths.wildcards(paths.CARD, card.absolute()):
        run = "{dataset}/{model}/seed{seed}/{arm}".format(**found)
        return paths.under(found["root"], paths.TRACKING), run
    return card.parent / "tracking", card.parent.name


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Return numbers and words by dotted names."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool | int | float | str):
        yield name, value
