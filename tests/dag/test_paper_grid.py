"""The paper's grid in a dry run: on a machine without data, weights or a GPU, and in seconds."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.rules.workflow import ROOT, environment, run

CPU_SECONDS = 20
"""Twice the goal of 10 s, because the speed of shared machines swings by half."""


def jobs(said: str) -> dict[str, int]:
    """Jobs by rule, out of what a dry run with ``--quiet rules`` prints."""
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], float]:
    """Jobs by rule of config.yaml as it stands, and the dry run's CPU time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = run("--dry-run", "--quiet", "rules", directory=tmp_path_factory.mktemp("paper")).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return jobs(said), spent


def test_it_lists_the_papers_fine_tunes(paper: tuple[dict[str, int], float]) -> None:
    counted, _ = paper
    assert counted["retrain"] == 2 * 3 * 5 * 8 * 9 == 2160
    assert counted["contaminate"] == counted["gold"] == counted["beta0"] == 2 * 3 * 5
    assert counted["embed"] == 30
    assert counted["score"] == 240
    assert counted["remove"] == 2160
    assert counted["evaluate"] == 60
    assert counted["tokens"] == 6
    assert counted["examples"] == 2
    assert counted["model_card"] == 3


def test_it_takes_seconds(paper: tuple[dict[str, int], float]) -> None:
    _, spent = paper
    assert spent < CPU_SECONDS


def test_studies_are_targets_of_their_own(tmp_path: Path) -> None:
    # The demo's model, so that the test is about the targets and takes two seconds.
    science = yaml.safe_load((ROOT / "profiles/demo/science.yaml").read_text(encoding="utf-8"))
    science["grid"]["selectors"] = ["random"]
    science["studies"] = {
        "reverse": {
            "datasets": ["synthetic"],
            "models": ["tiny-llama"],
            "selectors": ["random", "mamushi", "anti_mamushi"],
        },
        "estimator": None,
    }
    grid = jobs(run("--dry-run", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert grid["retrain"] == 2 * 1 * 3
    assert "figure_study" not in grid
    studies = jobs(run("studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert studies["retrain"] == 2 * 3 * 3
    assert studies["figure_study"] == studies["study_tables"] == 1


def test_parsing_imports_nothing_heavy(tmp_path: Path) -> None:
    program = """
import pkgutil
import sys
found = pkgutil.iter_modules
# The SLURM plug-in imports pandas of its own accord, whatever the Snakefile does.
pkgutil.iter_modules = lambda *a: (m for m in found(*a) if "plugin_slurm" not in m.name)
from snakemake.cli import main
sys.argv = ["snakemake", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
# NumPy is missing from this list because Snakemake loads it for its profiles.
heavy = ["torch", "transformers", "accelerate", "sklearn", "scipy", "pandas", "pyarrow"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""
    options = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path)]
    said = subprocess.run(
        [sys.executable, "-c", program, *options, "--list-rules"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    ).stdout
    assert "retrain" in said
    assert "loaded: []" in said


def test_what_the_snakefile_imports_of_the_package_is_light() -> None:
    program = """
import sys
from mamushi import config, grid, paths, settings
heavy = ["torch", "transformers", "accelerate", "sklearn", "scipy", "pandas", "numpy", "pyarrow"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment(PYTHONPATH=str(ROOT / "workflow")),
    ).stdout
    assert "loaded: []" in said
