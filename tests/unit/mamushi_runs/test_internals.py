"""What reaches into Snakemake does there what it is for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.workflow import ROOT, SNAKEMAKE, environment

JOBS = """
from mamushi_runs import internals

onstart:
    internals.start_at_once(workflow)

rule all:
    input: expand("{n}", n=range(14))

rule one:
    output: "{n}"
    shell: "sleep 1; touch {output}"
"""


def test_jobs_are_looked_for_when_one_ends_and_not_by_the_clock(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(JOBS, encoding="utf-8")
    done = subprocess.run(
        [SNAKEMAKE, "--cores", "2", "--verbose", "--scheduler", "greedy"],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    finished = len(re.findall("^Finished jobid", done.stderr, re.MULTILINE))
    assert finished == 15
    assert 0 < done.stderr.count("Resources before job selection") <= 2 * finished
