"""A mistyped target or file: what was probably meant."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mamushi.errors import UserError
from mamushi_runs import targets


def rule(name: str, *output: str) -> Any:
    def makes(file: str) -> bool:
        return any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), file) for each in output)

    return SimpleNamespace(name=name, output=output, is_producer=makes)


WORKFLOW: Any = SimpleNamespace(
    is_main_process=True,
    main_snakefile="/wf/Snakefile",
    rules=[
        rule("removals"),
        rule("evidence"),
        rule("remove", "results/removals/{selector}.parquet"),
        rule("tables", "results/tables/sad.csv"),
    ],
)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("removal", "no target 'removal'; did you mean 'removals'?"),
        ("evidnece", "no target 'evidnece'; did you mean 'evidence'?"),
        (
            "results/tabels/sad.csv",
            "no target 'results/tabels/sad.csv'; did you mean 'results/tables/sad.csv'?",
        ),
        ("quux", "no target 'quux'"),
    ],
)
def test_a_mistyped_target(target: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/snakemake", target, "--cores", "1"])
    with pytest.raises(UserError) as told:
        targets.check(WORKFLOW, ["/wf/Snakefile", "/wf/workflow/Snakefile"])
    assert str(told.value) == said
    # Another workflow's own, and a job's.
    targets.check(WORKFLOW, ["/other/Snakefile"])
    job = SimpleNamespace(**{**vars(WORKFLOW), "is_main_process": False})
    targets.check(job, ["/wf/Snakefile"])


def test_a_profile_by_a_path_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--directory` has taken Snakemake elsewhere by the time that the targets are looked at."""
    line = ["/bin/snakemake", "--profile", "profiles/of/mine", "--directory", str(tmp_path)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*line, "-n", "--", "removals"])
    targets.check(WORKFLOW, ["/wf/Snakefile", "/wf/workflow/Snakefile"])
    monkeypatch.setattr(sys, "argv", [*line, "-n", "--", "removal"])
    with pytest.raises(UserError, match="did you mean 'removals'"):
        targets.check(WORKFLOW, ["/wf/Snakefile", "/wf/workflow/Snakefile"])
