"""What reaches into Snakemake does there what it is for."""

from __future__ import annotations

import re
import subprocess
import sys
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


PARAMETERS = """
import sys
from types import SimpleNamespace
from snakemake.persistence import PersistenceBase as persistence
from mamushi_runs import internals

def recorded(value):
    own = SimpleNamespace(_serialize_param_builtin=lambda each: repr(each))
    return persistence._serialize_param_pandas(own, value)

if sys.argv[1:]:
    import pandas
before = "pandas" in sys.modules
internals.serialize_without_pandas()
print(recorded("text"), "pandas" in sys.modules)
if before:
    print(recorded(pandas.Series([1, 2])))
"""


def test_snakemake_imports_no_pandas_to_record_parameters() -> None:
    """Where a workflow that imports this one has imported it, tables are recorded as ever."""

    def said(*words: str) -> list[str]:
        env = environment() | {"PYTHONPATH": str(ROOT / "workflow")}
        line = [sys.executable, "-c", PARAMETERS, *words]
        return subprocess.check_output(line, env=env, text=True).splitlines()

    assert said() == ["'text' False"]
    first, table = said("pandas")
    assert first == "'text' True"
    assert re.fullmatch(r"\[\d+, \d+\]", table)
