"""What tests of the graph share: a Snakemake that makes many dry runs, and what it made up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake


@pytest.fixture(scope="session")
def snakemake() -> Iterator[Snakemake]:
    with Snakemake() as started:
        yield started


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which all targets of the small configuration are done."""
    folder = tmp_path_factory.mktemp("finished")
    contract_grid.make(folder)
    snakemake.finish(folder, targets=contract_grid.TARGETS)
    return folder
