"""What all tests share: one thread for arithmetic, and where the real data is."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# Set when pytest starts, because the libraries read them once, when they are imported. Commands
# that tests start inherit them.
os.environ.update(
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
)

# As in `python -m mamushi`: the libraries make hundreds of thousands of objects that stay.
gc.set_threshold(100_000, 50, 50)

ROOT = Path(__file__).parents[1]


def pytest_collection_finish() -> None:
    """Each training ends with a look for garbage; let it not search what all tests share."""
    gc.collect()
    gc.freeze()


LONG = ("end_to_end", "faults", "acceptance", "dag")
"""Folders of tests that take long, those with the longest files first."""


# Before pytest-xdist reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left with it when the others are done.

    A file's tests share what they set up, and run in one worker; so do all that look at the demo,
    and all that look at a real model, of which one in memory is enough.
    """

    def folder(item: pytest.Item) -> int:
        name = item.path.parent.name
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=folder)
    for item in items:
        group = item.nodeid.split("::")[0]
        if "ran" in getattr(item, "fixturenames", ()):
            group = "demo"
        elif folder(item) == LONG.index("acceptance"):
            group = "acceptance"
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep all but the tests of SLURM from it, where it is installed.

    Each start of Snakemake asks the controller for its configuration, as soon as the plug-in for
    SLURM is imported, and waits ten seconds for one that is down.
    """
    if item.get_closest_marker("slurm"):
        if os.environ.get("SLURM_CONF") == os.devnull:
            del os.environ["SLURM_CONF"]
    else:
        os.environ.setdefault("SLURM_CONF", os.devnull)


@pytest.fixture(autouse=True)
def told_to_end() -> Iterator[None]:
    """Where pytest runs in the background or under `nohup`, it ignores some signals to end, and so
    would all that it starts."""
    default = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {each: signal.signal(each, handler) for each, handler in default.items()}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with the real data under ``data``: ``MAMUSHI_SHARED``, else beside the repository."""
    folder = Path(os.environ.get("MAMUSHI_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data in {folder}; set MAMUSHI_SHARED to a folder that has it")
    return folder
