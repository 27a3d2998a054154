"""The demo at its smallest, run once for all that looks at what it leaves."""

from pathlib import Path

import pytest

from tests.support.demo import science
from tests.support.workflow import run


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo's three targets have run. A test leaves it as it is, or with more
    in it."""
    folder = tmp_path_factory.mktemp("demo")
    for targets in (("all", "evidence", "theory", "unlearning"), ("unlearning",)):
        # The second time, those budgets of its sweeps that the first run chose.
        run(*targets, "--cores", "2", directory=folder, config=science())
    return folder
