"""The demo at its smallest, run once for all that looks at what it leaves."""

from pathlib import Path

import pytest

from tests.support.demo import run_all


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo's three targets have run. A test leaves it as it is, or with more
    in it."""
    folder = tmp_path_factory.mktemp("demo")
    run_all(folder)
    return folder
