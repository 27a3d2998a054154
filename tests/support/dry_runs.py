"""Dry runs by the hundred: Snakemake in a process that is loaded once and forked for each.

``Snakemake`` starts such a process. It asks the job graph itself what would run, through
Snakemake's own interface, and can also pretend that all of it has run: files are made up and
recorded as after a real run, without computing anything.

    with Snakemake() as snakemake:
        snakemake.finish(folder)
        snakemake.would_run(folder, change={"training": {"epochs": 2}})  # {"retrain": 12, ...}
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import yaml

from tests.support.workflow import ROOT, environment

BEGAN = 1_600_000_000
"""Date of the first made-up file, in seconds; raw files are older, later steps are younger."""
BY_ITSELF = ("params_changed", "input_changed", "code_changed", "missing_output", "updated_input")
"""Reasons of a job that runs again, and not only for another job's sake."""


class Snakemake:
    """A process that has loaded Snakemake and the package, and runs them in forks of itself.

    A request takes a ``folder``, ``targets``, a ``change`` that is laid over the configuration as a
    ``--configfile`` is, a ``config`` as ``--config``, and ``resources`` by name."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.dry_runs"],
            cwd=ROOT,
            env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'workflow'}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _ask(self, do: str, folder: Path, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = json.dumps({"do": do, "folder": folder, **request}, default=str)
        print(asked, file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def would_run(self, folder: Path, **request: Any) -> dict[str, int]:
        """Jobs by rule that a run in ``folder`` would begin with."""
        needed: dict[str, int] = self.look(folder, **request)["needed"]
        return needed

    def look(self, folder: Path, **request: Any) -> dict[str, Any]:
        """What ``would_run`` knows, and more: ``needed`` and ``all`` jobs by rule, rules that
        ``begin``, ``runs`` as lists of the rule and its wildcards, ``blind`` ones, by rule the
        ``resources`` and the ``files``, what each job reads and makes; and what the ``rules``
        are."""
        return self._ask("look", folder, **request)

    def finish(self, folder: Path, **request: Any) -> dict[str, int]:
        """Make up the outputs of all jobs, and return the jobs by rule that were thus finished."""
        return self._ask("finish", folder, **request)


# The process --------------------------------------------------------------------------------------


def _serve() -> None:
    answers = os.dup(1)
    # A first one imports and parses what all need.
    with tempfile.TemporaryDirectory() as folder:
        _answered({"do": "look", "folder": folder, "targets": ["data"]})
    load_package()
    # What is there from the start is left alone, and a fork is gone before it has much garbage.
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answer = _answered(json.loads(line))
            os.write(answers, f"{json.dumps(answer)}\n".encode())
            os._exit(0)
        os.waitpid(child, 0)


def load_package() -> None:
    """Import what the Snakefile imports, and take the identities of all stages."""
    from mamushi.registry import PLUGIN_FOLDERS, plugins
    from mamushi.running import identity
    from mamushi.running.stage import stages

    for kind in PLUGIN_FOLDERS:
        plugins(kind)
    for stage in stages().values():
        identity.stage_digest(stage.module.__name__, stage.function.__name__)


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fork; what it said goes into the error, if there is one."""
    with tempfile.TemporaryFile("w+") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        do = {"look": _look, "finish": _finish}[request.pop("do")]
        try:
            with _planned(**request) as workflow:
                return do(workflow)
        except BaseException:
            said.seek(0)
            return {"error": said.read()[-4000:] + traceback.format_exc()}


@contextmanager
def _planned(
    folder: str,
    change: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
    resources: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """Snakemake's workflow object after a dry run."""
    from humanfriendly import parse_size
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        ResourceSettings,
    )

    profile = yaml.safe_load((ROOT / "profiles/default/profile.v9+.yaml").read_text("utf-8"))
    limit = parse_size(profile["max-checksum-file-size"])
    # With both, Snakemake counts the jobs and does not go through them one by one.
    quiet = {Quietness.RULES, Quietness.PROGRESS}
    with (
        tempfile.NamedTemporaryFile("w", suffix=".yaml") as changes,
        SnakemakeApi(OutputSettings(dryrun=True, quiet=quiet)) as api,
    ):
        extends = {} if Path(folder, "config.yaml").is_file() else {"extends": "paper"}
        yaml.safe_dump({**extends, **(change or {})}, changes)
        changes.flush()
        files = [Path(changes.name)] if change else []
        workflow = api.workflow(
            resource_settings=ResourceSettings(**{"cores": 1, **(resources or {})}),
            config_settings=ConfigSettings(config=config or {}, configfiles=files),
            snakefile=ROOT / "Snakefile",
            workdir=Path(folder),
        )
        try:
            asked = DAGSettings(targets=frozenset(targets), max_checksum_file_size=limit)
            workflow.dag(asked).execute_workflow(executor="dryrun")
            yield workflow._workflow
        except Exception as error:
            api.print_exception(error)
            raise


def _look(workflow: Any) -> dict[str, Any]:
    dag = workflow.dag
    # Targets are rules as well, but without an output there is nothing that they do.
    needed = [job for job in dag.needrun_jobs() if job.output]
    files: dict[str, list[Any]] = {}
    for job in dag.jobs:
        files.setdefault(job.rule.name, []).append(
            [[*map(str, job.input)], [*map(str, job.output)]]
        )
    return {
        "needed": Counter(job.rule.name for job in needed),
        "begin": sorted(
            {
                job.rule.name
                for job in needed
                if any(getattr(dag.reason(job), name) for name in BY_ITSELF)
            }
        ),
        "all": Counter(job.rule.name for job in dag.jobs),
        "files": files,
        "rules": {
            rule.name: {
                "shell": rule.shellcmd,
                "gpu": "gpu" in rule.resources,
                "temp": any("temp" in file.flags for file in rule.output),
                "local": rule.name in workflow._localrules,
            }
            for rule in workflow.rules
            if rule.output
        },
        # An output without a record hides every later change of the job that makes it.
        "blind": Counter(
            job.rule.name
            for job in dag.jobs
            if job.output and not dag.needrun(job) and not workflow.persistence.has_metadata(job)
        ),
        "runs": [[job.rule.name, dict(job.wildcards_dict)] for job in needed],
        "resources": {
            job.rule.name: {name: n for name, n in job.resources.items() if isinstance(n, int)}
            for job in needed
        },
    }


def _finish(workflow: Any) -> dict[str, Any]:
    dag, persistence = workflow.dag, workflow.persistence
    workflow.iocache.deactivate()
    persistence.deactivate_cache()
    finished = []
    for step, level in enumerate(dag.toposorted()):
        for job in level:
            if job.output and dag.needrun(job):
                for file in (*job.output, *job.log):
                    _make_up(Path(file), BEGAN + step)
                finished.append(job)

    async def record() -> None:
        for job in finished:
            await persistence.finished(job)

    workflow.async_run(record())
    return Counter(job.rule.name for job in finished)


def _make_up(path: Path, date: int) -> None:
    """Write a file whose content is its own name; what the Snakefile reads is as after a run."""
    from mamushi.io.files import write_json

    path.parent.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(("forget", "retain"), 10_000)
    sections = dict.fromkeys(("contamination", "inference", "evaluation"), counts)
    if path.suffix == ".json":
        content: dict[str, Any] = {"name": str(path), "counts": {"sections": sections}}
        sizes = ("parameters", "hidden_size", "layers", "vocabulary_size")
        content |= {**dict.fromkeys(sizes, 1000), "tied": True}
        write_json(path, content)
    else:
        path.write_text(f"{path}\n", encoding="utf-8")
    os.utime(path, (date, date))


if __name__ == "__main__":
    _serve()
