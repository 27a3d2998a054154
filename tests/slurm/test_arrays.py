"""Why profiles/slurm leaves job arrays off: with them, the SLURM plug-in 2.8 loses finished files.

Every task of an array starts Snakemake for the array's first job, and that starts Snakemake for the
task's job (``run_array_jobs`` of the plug-in, ``Executor.run_job`` of its jobstep). So the end of
any task is taken for the end of the first job: if a task fails, the first job's files are deleted,
and if a task ends much earlier than the first, the first job's files are missed and the task fails.

All tasks are also submitted with the first job's time and memory.

So the tests with arrays are expected to fail, with a ``Fault``. One that passes is reported as
XPASS(strict): upstream has mended its fault. Once none of them fails, the profile may turn arrays
on.
"""

import subprocess
from pathlib import Path

import pytest

from tests.support import cluster
from tests.support.workflow import SNAKEMAKE, environment

SNAKEFILE = """
rule all:
    input: expand("made/{{n}}", n=range(1, 5))

rule make:
    output: "made/{{n}}"
    resources: runtime=lambda wildcards: 5 + int(wildcards.n)
    # The number in the array where there is one, for Snakemake puts jobs into it in any order.
    shell: '''
        task=${{{{SLURM_ARRAY_TASK_ID:-{{wildcards.n}}}}}}
        if [ $task = {last} ]; then
            until [ -e go ]; do sleep 0.5; done
            {end}
        fi
        echo {{wildcards.n}} > {{output}}
        '''
"""
"""Four jobs, of which one waits for a file ``go`` and then runs ``end``."""


class Fault(Exception):
    """Something is wrong with jobs of an array."""


def faulty(reason: str) -> pytest.MarkDecorator:
    """Expect a ``Fault``."""
    return pytest.mark.xfail(strict=True, raises=Fault, reason=reason)


def with_and_without_arrays(reason: str) -> pytest.MarkDecorator:
    """Run a test with arrays, which have a fault, and without."""
    in_array = pytest.param(True, id="arrays", marks=faulty(reason))
    return pytest.mark.parametrize("arrays", [in_array, pytest.param(False, id="single")])


@with_and_without_arrays(
    "a task that fails deletes the files of its array's first job, though that succeeded"
)
def test_a_job_that_fails_leaves_files_of_finished_jobs(
    folder: Path, slurm: cluster.Cluster, arrays: bool
) -> None:
    status, messages = run(folder, slurm, arrays=arrays, last=4, end="exit 1")
    assert status != 0, messages
    check(folder, 3, messages)


@with_and_without_arrays("a task fails if its array's first job ends later than latency-wait")
def test_a_job_that_takes_longer_makes_no_job_fail(
    folder: Path, slurm: cluster.Cluster, arrays: bool
) -> None:
    status, messages = run(folder, slurm, arrays=arrays, last=1, end="true")
    check(folder, 4, messages)
    assert status == 0, messages


@faulty("all tasks of an array get what the rule asks for its first job")
def test_jobs_of_an_array_get_what_the_rule_asks_for_them(
    folder: Path, slurm: cluster.Cluster
) -> None:
    """Beside it, single jobs are tested in test_attempts.py and test_grid.py."""
    run(folder, slurm, arrays=True, last=1, end="true")
    cluster.wait_for(lambda: len(cluster.jobs(folder)) == 4, 60)
    minutes = sorted(job.minutes for job in cluster.jobs(folder))
    if minutes != [6, 7, 8, 9]:
        raise Fault(f"time limits of {minutes} minutes")


def run(
    folder: Path, slurm: cluster.Cluster, *, arrays: bool, last: int, end: str
) -> tuple[int, str]:
    """Run four jobs, of which ``last`` runs ``end`` after the end of the others.

    Returns Snakemake's exit status and messages.
    """
    snakefile, log = folder / "Snakefile", folder / "messages"
    snakefile.write_text(SNAKEFILE.format(last=last, end=end), encoding="utf-8")
    settings = {"latency-wait": 3, "retries": 0, "slurm-array-jobs": "all" if arrays else None}
    profile = cluster.write_profile(folder / "profile", slurm, settings)
    line = [SNAKEMAKE, "--profile", profile, "--snakefile", snakefile, "--directory", folder]

    def others_ended() -> bool:
        states = [job.state for job in cluster.queue(folder, ended=True)]
        return sum(state in cluster.ENDED for state in states) == 3

    with log.open("w", encoding="utf-8") as output:
        main = subprocess.Popen(
            line, env=environment(), stdout=output, stderr=subprocess.STDOUT, cwd=folder
        )
        try:
            cluster.wait_for(lambda: main.poll() is not None or others_ended(), 240)
            (folder / "go").touch()
            status = main.wait(240)
        finally:
            main.kill()
            main.wait()
    messages = log.read_text(encoding="utf-8")
    assert ("Submitted array job" in messages) == arrays, messages
    return status, messages


def check(folder: Path, files: int, messages: str) -> None:
    """Raise ``Fault`` unless so many files are there."""
    left = sorted(path.name for path in (folder / "made").iterdir())
    if len(left) < files:
        raise Fault(f"{left} are left of {files} files:\n{messages}")
