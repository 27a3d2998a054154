"""The paper's grid in a dry run: on a machine without data, weights or a GPU, and in seconds.

Seconds are CPU time, in units of a program that does what Snakemake does (formats, matches, makes
many small objects, reads signatures): the speed of shared machines swings by half, for both alike.
The unit takes about one second on the two slow cores for which the goals were set.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT, SNAKEMAKE, environment, run

UNIT = r"""
import inspect
import re
import string
pattern = re.compile(r"results/(?P<dataset>[^/]+)/seed(?P<seed>\d+)\.parquet")
formatter = string.Formatter()
def function(wildcards, attempt):
    pass
kept = []
for seed in range(60000):
    path = formatter.format("results/{dataset}/seed{seed}.parquet", dataset="texts", seed=seed)
    found = pattern.match(path).groupdict()
    kept.append((path, found, {name: [path] for name in ("input", "output", "log", "params")}))
    inspect.signature(function).parameters
held = {path: found for path, found, _ in kept}
assert all(held[path] is found and isinstance(files, dict) for path, found, files in kept)
"""
DRY_RUN, RULEGRAPH, PARSE = 10, 15, 1
"""The goals, in units."""
MARGIN = 1.25
"""What a measurement may be off by: the dry run takes 10.0 to 10.3 units beside a dozen other busy
processes."""


def cpu(line: Sequence[str | Path]) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, line)], env=environment(), capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def units(*line: str | Path, less: Sequence[str | Path] = ()) -> float:
    """CPU time of a command, less that of another, by the mean of the unit before and after."""
    first = cpu([sys.executable, "-c", UNIT])
    spent = cpu(line) - (cpu(less) if less else 0)
    return spent / ((first + cpu([sys.executable, "-c", UNIT])) / 2)


def jobs(said: str) -> dict[str, int]:
    """Jobs by rule, out of what a dry run with ``--quiet rules`` prints."""
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}


def snakemake(*options: str | Path, directory: Path) -> list[str | Path]:
    return [SNAKEMAKE, *options, "--snakefile", ROOT / "Snakefile", "--directory", directory]


def test_it_lists_the_papers_fine_tunes(tmp_path: Path) -> None:
    counted = jobs(run("--dry-run", "--quiet", "rules", directory=tmp_path).stdout)
    assert counted["retrain"] == 2 * 3 * 5 * 8 * 9 == 2160
    assert counted["contaminate"] == counted["gold"] == counted["beta0"] == 2 * 3 * 5
    assert counted["embed"] == 30
    assert counted["score"] == 240
    assert counted["remove"] == 2160
    assert counted["evaluate"] == 60
    assert counted["tokens"] == 6
    assert counted["examples"] == 2
    assert counted["model_card"] == 3


def test_a_dry_run_takes_seconds(tmp_path: Path) -> None:
    line = snakemake("--dry-run", "--quiet", "rules", directory=tmp_path)
    assert units(*line) < DRY_RUN * MARGIN


def test_the_graph_of_rules_takes_seconds(tmp_path: Path) -> None:
    assert units(*snakemake("--rulegraph", directory=tmp_path)) < RULEGRAPH


def test_parsing_takes_less_than_a_second(tmp_path: Path) -> None:
    """Beside Snakemake's own imports."""
    line = snakemake("--list-rules", directory=tmp_path)
    assert units(*line, less=[SNAKEMAKE, "--version"]) < PARSE


def test_settings_are_made_once_for_many_jobs(tmp_path: Path) -> None:
    with Snakemake() as forked:
        seen = forked.look(tmp_path)
    assert sum(seen["all"].values()) > 4900
    assert seen["settings"] < 500


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
from mamushi.configuration import complete as config, grid, settings
from mamushi.artifacts import paths
from mamushi_runs import environment, hooks
heavy = ["torch", "transformers", "accelerate", "sklearn", "scipy", "pandas", "numpy", "pyarrow"]
heavy += ["matplotlib", "tokenizers", "datasets", "psutil", "snakemake"]
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
