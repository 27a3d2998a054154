"""The made-up state of the re-run tests is the one that a run leaves, and says what a run says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT, SNAKEMAKE, environment

pytestmark = pytest.mark.slow

SMALLER: dict[str, Any] = {
    "grid": {
        "datasets": ["made"],
        "models": ["ours"],
        "seeds": [0],
        "budgets": [0.4],
        "selectors": ["mamushi"],
    },
    "studies": {
        "loaders": None,
        "selectors": {"datasets": ["made"], "selectors": ["random"]},
    },
    "unlearning": {"models": ["tiny"], "unlearners": ["neggrad_plus"], "budgets": [0.2, 0.4]},
    "probe": {"models": ["tiny"]},
    "models": {"ours": {"base": "tiny"}},
}
"""What is left of the small configuration: each rule still runs, most of them once."""

VOLATILE = ("starttime", "endtime", "job_hash", "external_jobid")


def laid_over(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: laid_over(base[key], value)
        if isinstance(value, dict) and isinstance(base.get(key), dict)
        else value
        for key, value in change.items()
    }
    return {**base, **both}


def made(folder: Path) -> Path:
    """A folder with the configuration and its raw files."""
    contract_grid.make(folder)
    config = laid_over(contract_grid.CONFIG, SMALLER)
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """What Snakemake remembers of each output, but for dates and numbers of jobs."""
    found = {}
    root = folder / ".snakemake/metadata"
    for path in root.rglob("*"):
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(root).parts)
            record = json.loads(path.read_text(encoding="utf-8"))
            kept = {key: value for key, value in record.items() if key not in VOLATILE}
            found[urlsafe_b64decode(name).decode()] = kept
    return found


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Snakemake has run all jobs, with a program that computes nothing."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("workflow", "envs", "profiles"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, copy)
    shutil.copy(ROOT / "tests/support/stub.py", copy / "workflow/mamushi/__main__.py")
    folder = made(tmp_path_factory.mktemp("executed"))
    asked = ["--snakefile", copy / "Snakefile", "--directory", folder, "--cores", "2"]
    asked += ["--verbose"]
    done = subprocess.run(
        [SNAKEMAKE, *contract_grid.TARGETS, *asked],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    folder = made(tmp_path_factory.mktemp("made_up"))
    snakemake.finish(folder, targets=contract_grid.TARGETS)
    return folder


def test_it_is_remembered_as_a_run_is(executed: Path, made_up: Path) -> None:
    real, pretended = records(executed), records(made_up)
    assert real.keys() == pretended.keys()
    assert len(real) > 100
    for name, record in real.items():
        assert pretended[name] == record, name


def test_no_file_is_there_that_a_run_would_not_leave(executed: Path, made_up: Path) -> None:
    def files(folder: Path) -> set[Path]:
        found = (folder / "results").rglob("*")
        return {path.relative_to(folder) for path in found if path.is_file()}

    assert files(made_up) <= files(executed)
    assert {path.suffix for path in files(made_up)} >= {".parquet", ".log", ".json"}


def test_jobs_are_looked_for_when_one_ends_and_not_by_the_clock(executed: Path) -> None:
    said = (executed / "said").read_text(encoding="utf-8")
    looks = said.count("Resources before job selection")
    assert 0 < looks <= 2 * len(re.findall(r"^Finished jobid", said, re.MULTILINE))


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "learning rate": {"training": {"learning_rate": 1e-4}},
    "target": {"unlearning": {"target": 0.6}},
    "budgets": {"grid": {"budgets": [0.4, 0.95]}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_means_the_same_to_both(
    snakemake: Snakemake, executed: Path, made_up: Path, name: str
) -> None:
    seen = [
        snakemake.look(folder, change=CHANGES[name], targets=contract_grid.TARGETS)
        for folder in (executed, made_up)
    ]
    assert seen[0]["needed"] == seen[1]["needed"]
    assert seen[0]["blind"] == seen[1]["blind"] == {}
    assert bool(seen[0]["needed"]) == (name != "nothing")
