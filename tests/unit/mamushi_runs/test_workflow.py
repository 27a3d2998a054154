"""How the commands that start the workflow find what to run it with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi_runs import workflow
from tests.support.workflow import ROOT


def test_a_cluster_without_its_plug_in_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workflow.profile("slurm") == ROOT / "profiles" / "slurm"
    monkeypatch.setattr(workflow, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"slurm: Snakemake's plug-in .*mamushi-unlearn\[slurm\]"):
        workflow.profile("slurm")
    assert workflow.profile("gpu") == ROOT / "profiles" / "gpu"


def test_the_plug_in_goes_by_that_name() -> None:
    """Else the line above would be said for ever."""
    assert find_spec("snakemake_executor_plugin_slurm") is not None
    assert Path(workflow.profile("demo")).is_dir()
