"""The workflow as snakedeploy deploys it: a Snakefile that imports it, with a configuration."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.demo import small
from tests.support.workflow import ROOT, SNAKEMAKE, warmed


def test_a_deployed_workflow_runs(tmp_path: Path) -> None:
    pytest.importorskip("snakedeploy")
    repository, place = tmp_path / "mamushi", tmp_path / "deployed"
    for name in ("envs", "profiles", "workflow"):
        shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pyc*"))
    for name in ("Snakefile", "config.yaml", "LICENSE"):
        shutil.copy(ROOT / name, repository)
    program = Path(sys.executable).with_name("snakedeploy")
    deploy = [program, "deploy-workflow", repository, place, "--branch", "main"]
    subprocess.run(deploy, capture_output=True, check=True)
    assert (place / "profiles/slurm/profile.v9+.yaml").is_file()
    # Of a repository that is no URL it writes a path from the repository's own folder.
    snakefile = place / "workflow/Snakefile"
    text = snakefile.read_text(encoding="utf-8")
    assert text.count('"Snakefile"') == 1
    snakefile.write_text(text.replace('"Snakefile"', f'"{repository}/Snakefile"'))
    config = yaml.safe_dump(small(texts=(60, 80)))
    (place / "config/config.yaml").write_text(config, encoding="utf-8")

    def snakemake(*words: str) -> str:
        done = subprocess.run(
            [SNAKEMAKE, "--cores", "1", *words],
            cwd=place,
            env=warmed(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    # Default target and configuration are the deployed ones: a seed, 2 selectors, 2 budgets.
    assert "retrain                  4" in snakemake("--dry-run", "--quiet", "rules")
    snakemake("data")
    assert (place / "results/data/synthetic/examples.parquet").is_file()
