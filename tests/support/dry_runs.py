"""Dry runs by the hundred: Snakemake in a process that is loaded once and forked for each.

``Snakemake`` starts such a process. It asks the job graph itself what would run, through
Snakemake's own interface, and can also pretend that all of it has run: files are made up and
recorded as after a real run, without computing anything.

    with Snakemake() as snakemake:
        snakemake.finish(folder)
        snakemake.would_run(folder, change={"training": {"epochs": 2}})  # {"retrain": 12, ...}
"""

import gc
import importlib
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


class Snakemake:
    """A process that has loaded Snakemake and the package, and runs them in forks of itself."""

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
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request, default=str), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def would_run(
        self,
        folder: Path,
        *,
        change: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        targets: Sequence[str] = (),
        snakefile: Path = ROOT / "Snakefile",
        **settings: Mapping[str, Any],
    ) -> dict[str, int]:
        """Jobs by rule that a run in ``folder`` would begin with.

        ``change`` is laid over the configuration as a ``--configfile`` is, ``config`` as
        ``--config`` is. ``settings`` are Snakemake's, by the name of the group in its interface.
        """
        return self.look(
            folder,
            change=change,
            config=config,
            targets=targets,
            snakefile=snakefile,
            settings=settings,
        )["needed"]

    def look(self, folder: Path, **request: Any) -> dict[str, Any]:
        """What ``would_run`` knows, and more: ``needed`` and ``all`` jobs by rule, rules that
        ``begin``, ``runs`` as lists of the rule and its wildcards, ``blind`` ones and
        ``resources`` by rule; and what the ``rules`` are."""
        return self._ask(do="look", folder=folder, **request)

    def files(self, folder: Path, **request: Any) -> dict[str, Any]:
        """The graph as files: of each rule its ``output`` and ``log`` as patterns, its ``input`` as
        patterns or None where functions give it, its jobs as pairs of wildcards and inputs, and
        their ``files``, what each reads and makes; and ``targets``, the inputs of the target."""
        return self._ask(do="files", folder=folder, **request)

    def finish(self, folder: Path, **request: Any) -> dict[str, int]:
        """Make up the outputs of all jobs, and return the jobs by rule that were thus finished."""
        finished: dict[str, int] = self._ask(do="finish", folder=folder, began=BEGAN, **request)
        return finished


# The process --------------------------------------------------------------------------------------


def _serve() -> None:
    # Snakemake imports the last four while it runs.
    for name in ("snakemake.cli", "jsonschema", "packaging.version", "dpath", "requests"):
        importlib.import_module(name)
    _load_package()
    # What is there from the start is left alone by the forks' garbage collection.
    gc.collect()
    gc.freeze()
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answer = _answered(json.loads(line))
            os.write(answers, f"{json.dumps(answer)}\n".encode())
            os._exit(0)
        os.waitpid(child, 0)


def _load_package() -> None:
    """Import what the Snakefile imports, and take the identities of all stages."""
    from mamushi.registry import PLUGIN_FOLDERS, plugins
    from mamushi.running import identity
    from mamushi.running.stage import stages

    for kind in PLUGIN_FOLDERS:
        plugins(kind)
    for stage in stages().values():
        identity.of_stage(stage.entry)


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fork; what it said goes into the error, if there is one."""
    with tempfile.TemporaryFile("w+") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        known = {"look": _look, "finish": _finish, "files": _files}
        do = known[request.pop("do")]
        try:
            return do(**request)
        except BaseException:
            said.seek(0)
            return {"error": said.read()[-4000:] + traceback.format_exc()}


def _limit() -> int:
    """Bytes up to which files are compared by content: the value of profiles/default."""
    text = (ROOT / "profiles/default/profile.v9+.yaml").read_text(encoding="utf-8")
    from humanfriendly import parse_size

    return parse_size(yaml.safe_load(text)["max-checksum-file-size"])


@contextmanager
def _planned(
    folder: str,
    change: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
    snakefile: str = str(ROOT / "Snakefile"),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Any]:
    """Snakemake's workflow object after a dry run."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        ResourceSettings,
    )

    given = settings or {}
    # With both, Snakemake counts the jobs and does not go through them one by one.
    quiet = {Quietness.RULES, Quietness.PROGRESS}
    configfiles = []
    if change:
        if not Path(folder, "config.yaml").is_file():
            change = {"extends": "paper", **change}
        written = Path(tempfile.mkdtemp(prefix="mamushi-change-")) / "change.yaml"
        written.write_text(yaml.safe_dump(change), encoding="utf-8")
        configfiles.append(written)
    try:
        with SnakemakeApi(OutputSettings(dryrun=True, quiet=quiet)) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(**{"cores": 1, **given.get("resources", {})}),
                config_settings=ConfigSettings(config=config or {}, configfiles=configfiles),
                snakefile=Path(snakefile),
                workdir=Path(folder),
            )
            try:
                graph = workflow.dag(
                    DAGSettings(targets=frozenset(targets), max_checksum_file_size=_limit())
                )
                graph.execute_workflow(executor="dryrun")
                yield workflow._workflow
            except Exception as error:
                api.print_exception(error)
                raise
    finally:
        for written in configfiles:
            written.unlink()
            written.parent.rmdir()


def _look(**request: Any) -> dict[str, Any]:
    with _planned(**request) as workflow:
        # Targets are rules as well, but without an output there is nothing that they do.
        needed = [job for job in workflow.dag.needrun_jobs() if job.output]
        return {
            "needed": Counter(job.rule.name for job in needed),
            "begin": _begin(workflow.dag, needed),
            "all": Counter(job.rule.name for job in workflow.dag.jobs),
            "rules": {
                rule.name: {
                    "shell": rule.shellcmd,
                    "inputs": [*rule.input.keys()],
                    "outputs": [*rule.output.keys()],
                    "gpu": "gpu" in rule.resources,
                    "temp": any("temp" in file.flags for file in rule.output),
                    "local": rule.name in workflow._localrules,
                    "retries": rule.restart_times,
                }
                for rule in workflow.rules
                if rule.output
            },
            # An output without a record hides every later change of the job that makes it.
            "blind": Counter(
                job.rule.name
                for job in workflow.dag.jobs
                if job.output
                and not workflow.dag.needrun(job)
                and not workflow.persistence.has_metadata(job)
            ),
            "runs": [[job.rule.name, dict(job.wildcards_dict)] for job in needed],
            "resources": {
                job.rule.name: {name: n for name, n in job.resources.items() if isinstance(n, int)}
                for job in needed
            },
        }


def _begin(dag: Any, needed: Sequence[Any]) -> list[str]:
    """Return the rules of which jobs run again by themselves, not only for another job's sake."""
    reasons = ("params_changed", "input_changed", "code_changed", "missing_output", "updated_input")
    begin = (job for job in needed if any(getattr(dag.reason(job), name) for name in reasons))
    return sorted({job.rule.name for job in begin})


def _files(**request: Any) -> dict[str, Any]:
    with _planned(**request) as workflow:
        found: dict[str, Any] = {}
        for job in workflow.dag.jobs:
            rule = job.rule
            if not job.output:
                found["targets"] = [str(file) for file in job.input]
                continue
            # `ancient(...)` of a function is the function's name as text.
            made_up = any(callable(f) or str(f).startswith("<function") for f in rule.input)
            patterns = None if made_up else [str(f) for f in rule.input]
            about = found.setdefault(
                rule.name,
                {
                    "input": patterns,
                    "output": [str(file) for file in rule.output],
                    "log": [str(file) for file in rule.log],
                    "jobs": [],
                    "files": [],
                },
            )
            read = [str(file) for file in job.input] if patterns is None else []
            about["jobs"].append([job.wildcards_dict, read])
            about["files"].append([[*map(str, job.input)], [*map(str, job.output)]])
        return found


def _finish(began: int, **request: Any) -> dict[str, Any]:
    with _planned(**request) as workflow:
        dag, persistence = workflow.dag, workflow.persistence
        workflow.iocache.deactivate()
        persistence.deactivate_cache()
        finished = []
        for step, level in enumerate(dag.toposorted()):
            for job in level:
                if job.output and dag.needrun(job):
                    for file in (*job.output, *job.log):
                        _make_up(Path(file), began + step)
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
        content = {"name": str(path), "counts": {"sections": sections}, "added": []}
        content |= {"provenance": {"settings": {"budgets": []}}}
        sizes = ("parameters", "hidden_size", "layers", "vocabulary_size")
        content |= {**dict.fromkeys(sizes, 1000), "tied": True}
        write_json(path, content)
    else:
        path.write_text(f"{path}\n", encoding="utf-8")
    os.utime(path, (date, date))


if __name__ == "__main__":
    _serve()
