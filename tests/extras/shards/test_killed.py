"""A corpus that jobs screen is the same one whatever their order, and whatever was killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths
from tests.support.audit import commands
from tests.support.corpora import screened_corpus
from tests.support.processes import until
from tests.support.workflow import command, environment, run

pytestmark = pytest.mark.slow
SHARDS = 3
TABLES = [pattern.format(dataset="corpus") for pattern in (paths.EXAMPLES, paths.DUPLICATES)]
KILLED = {"screen-texts": "job", "screen-scores": "all", "screen-pass": "job"}
"""A command, and what is killed while it runs: it alone, or Snakemake with all of its jobs."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The configuration of a corpus of four files."""
    return screened_corpus(tmp_path_factory.mktemp("corpus"))


def sharded(corpus: dict[str, Any]) -> dict[str, Any]:
    return {**corpus, "execution": {"shards": SHARDS}}


@pytest.fixture(scope="module")
def undisturbed(corpus: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Both tables as one process makes them."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(*TABLES, directory=folder, config=corpus)
    return [(folder / table).read_bytes() for table in TABLES]


def test_jobs_in_another_order(
    corpus: dict[str, Any], undisturbed: list[bytes], tmp_path: Path
) -> None:
    """The last shard first, in each of the three readings."""
    config = sharded(corpus)
    for pattern in (paths.SCREEN_TEXTS, paths.SCREEN_SCORES, paths.PASSED_ROWS):
        last = pattern.format(dataset="corpus", shard=SHARDS - 1)
        run("--notemp", last, directory=tmp_path, config=config)
    run(*TABLES, directory=tmp_path, config=config)
    assert [(tmp_path / table).read_bytes() for table in TABLES] == undisturbed


def test_jobs_that_are_killed(
    corpus: dict[str, Any], undisturbed: list[bytes], tmp_path: Path
) -> None:
    for stage, what in KILLED.items():
        line = command(*TABLES, "--rerun-incomplete", directory=tmp_path, config=sharded(corpus))
        alone = environment(MAMUSHI_WARM="off")
        with (tmp_path / "said").open("w") as said:
            main = subprocess.Popen(
                line, env=alone, stdout=said, stderr=said, start_new_session=True
            )
        pids: list[int] = []

        def runs(stage: str = stage, pids: list[int] = pids) -> bool:
            pids[:] = [pid for pid, words in commands(tmp_path).items() if words[0] == stage]
            return bool(pids)

        try:
            until(runs, 300)
            os.kill(pids[0], signal.SIGKILL)
            if what == "all":
                os.killpg(main.pid, signal.SIGKILL)
            assert main.wait(300) != 0, (tmp_path / "said").read_text()
        finally:
            main.kill()
        if what == "all":
            run("--unlock", directory=tmp_path, config=sharded(corpus))
    run(*TABLES, "--rerun-incomplete", directory=tmp_path, config=sharded(corpus))
    assert [(tmp_path / table).read_bytes() for table in TABLES] == undisturbed
