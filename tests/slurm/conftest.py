"""What tests on a real SLURM share: they are skipped where there is none, and leave no job."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cluster, scene
from tests.support.workflow import run

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs SLURM."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session", autouse=True)
def slurm() -> cluster.Cluster:
    """The cluster's names. Skips where SLURM or its accounting is missing."""
    if reason := cluster.missing():
        pytest.skip(reason)
    return cluster.here()


def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder that nodes see: in ``MAMUSHI_SLURM_FOLDER`` where that is set.

    Called as none was before: accounting remembers jobs by their folder, and pytest's numbers begin
    anew where its folder was deleted.
    """
    new = tmp_path_factory.mktemp(f"slurm-{uuid.uuid4().hex}-")
    if "MAMUSHI_SLURM_FOLDER" not in os.environ:
        return new
    shared = Path(os.environ["MAMUSHI_SLURM_FOLDER"]) / new.parent.name / new.name
    shared.mkdir(parents=True)
    return shared


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the runs of a module; what is still queued from below it is cancelled."""
    folder = base(tmp_path_factory)
    yield folder
    for inner in [folder, *(path for path in folder.iterdir() if path.is_dir())]:
        cluster.cancel(inner)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the runs of one test; what is still queued from it is cancelled."""
    folder = base(tmp_path_factory)
    yield folder
    cluster.cancel(folder)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny grid, made on the CPU of this machine without SLURM; see ``scene``."""
    folder = base(tmp_path_factory)
    run(directory=folder, config=scene.CONFIG)
    return folder


@pytest.fixture
def disturbed(undisturbed: Path, folder: Path) -> Iterator[scene.Scene]:
    """That grid with two models still to be retrained on SLURM; see ``scene``."""
    made = scene.make(undisturbed, folder)
    yield made
    made.close()
