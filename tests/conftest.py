"""What all tests share: one thread for arithmetic, and where the real data is."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import warm

ROOT = Path(__file__).parents[1]

# Set when pytest starts, because the libraries read them once, when they are imported. Commands
# that tests start inherit them.
os.environ.update(
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    # Programs that tests start in other folders import `tests.support`.
    PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
)

# How long an example takes to draw or to test says how busy the machine is.
settings.register_profile("tests", deadline=None, suppress_health_check=[*HealthCheck])
settings.load_profile("tests")

# As in `python -m mamushi`: the libraries make hundreds of thousands of objects that stay.
gc.set_threshold(100_000, 50, 50)


def pytest_configure(config: pytest.Config) -> None:
    """Start the server of all workers: see ``tests.support.warm``."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[warm.SHARED] = warm.server()


def pytest_collection_finish() -> None:
    """Each training ends with a look for garbage; let it not search what all tests share."""
    gc.collect()
    gc.freeze()


LONG = ("faults", "end_to_end", "acceptance", "dag")
"""Folders of tests that take long, those with the longest files first."""


# Before pytest-xdist reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left with it when the others are done.

    A file's tests share what they set up, and run in one worker; so do all that look at the demo or
    at another finished folder, and all that look at a real model, of which one in memory is enough.
    """

    def folder(item: pytest.Item) -> int:
        name = item.path.parent.name
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=folder)
    for item in items:
        group = item.nodeid.split("::")[0]
        names = getattr(item, "fixturenames", ())
        if shared := {"demo", "smollm2", "snakemake"} & {*names}:
            group = shared.pop()
        elif folder(item) == LONG.index("faults"):
            group = "faults"
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


@pytest.fixture(scope="session", autouse=True)
def started_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set up what tests share in an empty folder: the clone may hold a user's results."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("shared"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test in a folder of its own, so that it neither reads nor writes `results` of the
    folder in which pytest was started."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def default_signals() -> Iterator[None]:
    """Restore the signals that end a process, for each test and all that it starts: in the
    background or under `nohup`, pytest ignores some of them."""
    default = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {each: signal.signal(each, handler) for each, handler in default.items()}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture(autouse=True)
def quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait until the disk has its files, but for those that end processes."""
    if request.path.parent.name not in ("faults", "slurm"):
        monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with the real data under ``data``: ``MAMUSHI_SHARED``, else beside the repository."""
    folder = Path(os.environ.get("MAMUSHI_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data in {folder}; set MAMUSHI_SHARED to a folder that has it")
    return folder
