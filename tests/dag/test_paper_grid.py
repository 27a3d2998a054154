"""The paper's grid in a dry run: on a machine without data, weights or a GPU, and in the time that
Snakemake itself takes for a grid of this size.

CPU time is compared with that of a bare Snakefile in the same minute: the same jobs, files and
logs, without settings, resources or anything else that Mamushi adds.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.demo import whole
from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT, SNAKEMAKE, environment, run

BARE = """
import json
found = json.loads(open("files.json").read())
reads = {
    name: {json.dumps(sorted(wildcards.items())): files for wildcards, files in rule["jobs"]}
    for name, rule in found["rules"].items()
}
def reading(name):
    return lambda wildcards: reads[name][json.dumps(sorted(wildcards.items()))]
wildcard_constraints:
    seed=r"\\d+",
    beta=r"0\\.\\d\\d",
    arm=r"base|contaminated|gold|beta0|retrained/[^/]+/beta0\\.\\d\\d",
    dataset=r"[^/]+",
    model=r"[^/]+",
    selector=r"[^/]+",
    unlearner=r"[^/]+",
rule all:
    input: found["targets"]
"""
AGAINST_BARE = 1.5
"""Bound of the dry run's CPU time."""
JOBS = {
    **{"examples": 2, "model_card": 3, "tokens": 6, "embed": 30, "score": 240, "remove": 2160},
    **{"contaminate": 30, "gold": 30, "beta0": 30, "retrain": 2 * 3 * 5 * 8 * 9},
    "evaluate": 2160 + 60,
}


def cpu(line: Sequence[str | Path], **options: Any) -> tuple[float, str]:
    """CPU seconds of a command, and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*map(str, line)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), done.stdout


def jobs(output: str) -> dict[str, int]:
    """Jobs by rule, out of what a dry run with ``--quiet rules`` prints."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def snakemake(*options: str | Path, directory: Path) -> list[str | Path]:
    return [SNAKEMAKE, *options, "--snakefile", ROOT / "Snakefile", "--directory", directory]


def bare(graph: dict[str, Any], folder: Path) -> None:
    """Write a Snakefile with the same jobs."""
    targets = graph.pop("targets")
    (folder / "files.json").write_text(json.dumps({"rules": graph, "targets": targets}))
    text = [BARE]
    for name, rule in graph.items():
        inputs = f"reading({name!r})" if rule["input"] is None else repr(rule["input"])
        text.append(f"rule {name}:\n    input: {inputs}\n    output: {rule['output']}\n")
        text += [f"    log: {rule['log']!r}\n"] if rule["log"] else []
        text.append("    shell: 'true'\n")
    (folder / "Snakefile").write_text("".join(text))


@pytest.mark.slow
def test_a_dry_run_takes_little_more_than_snakemakes_own_time(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bare")
    with Snakemake() as forked:
        bare(forked.files(tmp_path), folder)
    options = ["--dry-run", "--quiet", "rules"]
    ours, theirs = [], []
    # The least of a few: what runs on the other core makes either of them dearer.
    while len(ours) < 2 or (len(ours) < 5 and min(ours) >= AGAINST_BARE * min(theirs)):
        spent, output = cpu(snakemake(*options, directory=tmp_path))
        ours.append(spent)
        spent, bare_output = cpu([SNAKEMAKE, *options], cwd=folder)
        theirs.append(spent)
        assert JOBS.items() <= jobs(output).items()
        assert jobs(output) == jobs(bare_output)
    print(f"dry run {min(ours):.1f} s, bare {min(theirs):.1f} s of CPU time")
    assert min(ours) < AGAINST_BARE * min(theirs), (ours, theirs)
    # Reading the Snakefile is a fraction of it, beside Snakemake's own imports.
    parsing, _ = cpu(snakemake("--list-rules", directory=tmp_path))
    start, _ = cpu([SNAKEMAKE, "--version"])
    assert parsing - start < 0.15 * min(theirs)


def test_studies_are_targets_of_their_own(tmp_path: Path) -> None:
    # The demo's model, so that the test is about the targets and takes two seconds.
    science = whole()
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


def test_the_real_run_is_of_one_model_in_aligned_steps(tmp_path: Path) -> None:
    science = yaml.safe_load((ROOT / "studies/real/config.yaml").read_text(encoding="utf-8"))
    folder = tmp_path / science["models"]["smollm2"]["source"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    output = run("all", "studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout
    counted = jobs(output)
    assert (counted["examples"], counted["model_card"]) == (1, 1)
    assert (counted["retrain"], counted["gold"], counted["beta0"]) == (7 * 3, 1, 1)


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
heavy += ["matplotlib", "seaborn"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""
    options = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path)]
    output = subprocess.run(
        [sys.executable, "-c", program, *options, "--list-rules"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    ).stdout
    assert "retrain" in output
    assert "loaded: []" in output
