"""The demo at its smallest, run once for all that looks at what it leaves; a browser for pages."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.demo import Ran, science, weights
from tests.support.workflow import command, run, warmed


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("demo")
    run("--cores", "2", directory=folder, config=science())
    evidence = run("evidence", "--cores", "2", directory=folder, config=science()).stdout
    # With a checkpoint at every step, so that one that stays is seen.
    config = science() | {"execution": {"checkpoint_seconds": 0}}
    line = command("unlearning", "--cores", "2", directory=folder, config=config)
    most = 0
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(line, env=warmed(), stdout=said, stderr=subprocess.STDOUT)
        while running.poll() is None:
            most = max(most, len(weights(folder)))
            time.sleep(0.1)
    assert running.returncode == 0, (folder / "said.txt").read_text()
    return Ran(folder, evidence, most)


@pytest.fixture
def demo(ran: Ran) -> Path:
    """A folder in which the demo's three targets have run. A test leaves it as it finds it, or
    with more in it."""
    return ran.folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
