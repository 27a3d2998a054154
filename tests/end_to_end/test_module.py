"""Another workflow imports this one, with a configuration of its own: as a module, or deployed."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.demo import small
from tests.support.workflow import ROOT, SNAKEMAKE, output_of, warmed

pytestmark = pytest.mark.slow

HOST = """
configfile: "host.yaml"


module mamushi:
    snakefile:
        config["snakefile"]
    config:
        config["mamushi"]


use rule * from mamushi as mamushi_*


# A rule of the host's own, with the same settings but other resources.
use rule score from mamushi as mamushi_score with:
    threads: 1


rule cleaned:
    default_target: True
    input:
        "results/runs/synthetic/tiny-llama/seed0/removals/mamushi/beta0.50.parquet",
    output:
        "cleaned/gone.parquet",
    shell:
        "cp {input:q} {output:q}"


# Snakemake runs the hooks of the main workflow alone.
from mamushi_cluster import hooks


onstart:
    hooks.started()


onsuccess:
    hooks.ended(True)


onerror:
    hooks.ended(False)
"""


RANKED = ("forget", "inference")


def science() -> dict[str, Any]:
    """The demo, as small as it can be."""
    found = small(texts=(60, 80))
    found["grid"]["budgets"] = [0.5]
    return found


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder with a workflow that imports this one."""
    (tmp_path / "Snakefile").write_text(HOST, encoding="utf-8")
    config = {"snakefile": str(ROOT / "Snakefile"), "mamushi": science()}
    (tmp_path / "host.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return tmp_path


def snakemake(folder: Path, *args: str) -> str:
    # The host's own rule finds the Python of this test, as an installed host's rules would.
    env = warmed(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return output_of(SNAKEMAKE, "--cores", "2", *args, cwd=folder, env=env)


def test_its_removal_lists_feed_the_hosts_rules(host: Path) -> None:
    snakemake(host)
    examples = pq.read_table(host / "results/data/synthetic/examples.parquet").to_pylist()
    forget = {row["id"] for row in examples if (row["domain"], row["section"]) == RANKED}
    gone = {*pq.read_table(host / "cleaned/gone.parquet")["id"].to_pylist()}
    assert len(gone) == round(len(forget) / 2) and gone < forget
    # Nothing but what the list needs: no model was retrained.
    assert not list(host.glob("results/runs/**/retrained"))
    # Its hooks ran: there is a start page, and what saves time is gone.
    assert (host / "results/index.html").is_file()
    assert not (host / "results/claims").exists()
    # A second run finds everything done.
    assert "Nothing to be done" in snakemake(host)


def test_a_deployed_workflow_runs(tmp_path: Path) -> None:
    """As snakedeploy deploys it: a Snakefile that imports it, with a configuration."""
    pytest.importorskip("snakedeploy")
    repository, place = tmp_path / "mamushi", tmp_path / "deployed"
    for name in ("config", "envs", "profiles", "workflow"):
        shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pyc*"))
    for name in ("Snakefile", "config.yaml", "LICENSE"):
        shutil.copy(ROOT / name, repository)
    program = Path(sys.executable).with_name("snakedeploy")
    output_of(program, "deploy-workflow", repository, place, "--branch", "main")
    assert (place / "profiles/slurm/profile.v9+.yaml").is_file()
    # Of a repository that is no URL it writes a path from the repository's own folder.
    snakefile = place / "workflow/Snakefile"
    text = snakefile.read_text(encoding="utf-8")
    assert text.count('"workflow/Snakefile"') == 1
    snakefile.write_text(text.replace('"workflow/', f'"{repository}/workflow/'))
    # Its configuration is the paper's, to be changed.
    assert (place / "config/config.yaml").read_text() == (ROOT / "config.yaml").read_text()
    (place / "config/config.yaml").write_text(yaml.safe_dump(small(texts=(60, 80))))
    # Default target and configuration are the deployed ones: a seed, 2 selectors, 2 budgets.
    jobs = snakemake(place, "--dry-run", "--quiet", "rules")
    assert re.search(r"^retrain +4$", jobs, re.MULTILINE), jobs
    snakemake(place, "data")
    assert (place / "results/data/synthetic/examples.parquet").is_file()
