"""What tests of the graph share: one Snakemake that makes many dry runs."""

from collections.abc import Iterator

import pytest

from tests.support.dry_runs import Snakemake


@pytest.fixture(scope="module")
def snakemake() -> Iterator[Snakemake]:
    with Snakemake() as started:
        yield started
