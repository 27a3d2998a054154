"""A corpus of many files, screened by jobs of datatrove on several nodes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extras.unlabelled.test_corpus_screen import (
    corpus_of,
    page_block,
    passed_config,
    read_examples,
)
from tests.support import cluster
from tests.support.processes import until
from tests.support.workflow import ROOT, environment


def test_jobs_on_several_nodes_let_the_same_texts_through(
    folder: Path, slurm: cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one process on this machine."""
    pytest.importorskip("datatrove")
    monkeypatch.chdir(folder)
    config = corpus_of(folder)
    executor = f'SlurmPipelineExecutor(pipeline, tasks, "0:05:00", "{slurm.cpu_partition}", '
    executor += 'depends=last, logging_dir=f"logs/{number}")'
    block = re.sub(r"LocalPipelineExecutor\(.*\)", executor, page_block())
    block = block.replace("import LocalPipelineExecutor", "import SlurmPipelineExecutor")
    Path("screen.py").write_text(block, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = environment(PYTHONPATH=str(ROOT / "workflow"), PATH=path)
    subprocess.run([sys.executable, "screen.py"], env=env, check=True)
    done = folder / "logs/4/completions"
    until(lambda: len([*done.glob("*")]) == 4, 300)
    assert read_examples(passed_config(config)) == read_examples(config)
