"""The demo's grid through sbatch: what SLURM was asked for, what it gave, and the same results."""

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from safetensors.numpy import load_file

from tests.support import cluster
from tests.support.contract_grid import rules
from tests.support.demo import small as science
from tests.support.workflow import command, environment


def grid() -> dict[str, Any]:
    """Configuration of the run that all tests of this file look at."""
    part = science()
    part["grid"] |= {"budgets": [0.5], "selectors": ["random"]}
    part["execution"] = {"batch_tokens": 512}
    return part


@pytest.fixture(scope="module")
def folders(shared_folder: Path) -> tuple[Path, Path]:
    """Two folders in which the grid has run, at the same time: on SLURM, and on this machine."""
    on_slurm, alone = shared_folder / "slurm", shared_folder / "alone"
    for folder in (on_slurm, alone):
        folder.mkdir()
    with open(alone / "said", "w", encoding="utf-8") as output:
        line = command(directory=alone, config=grid())
        other = subprocess.Popen(line, env=environment(), stdout=output, stderr=output)
        try:
            cluster.run(directory=on_slurm, config=grid())
            assert other.wait() == 0, (alone / "said").read_text(encoding="utf-8")
        finally:
            other.terminate()
            other.wait()
    return on_slurm, alone


@pytest.fixture
def jobs(folders: tuple[Path, Path]) -> list[cluster.Job]:
    """The SLURM jobs of the run on SLURM, each of which went through at its first attempt."""
    found = cluster.settled(folders[0])
    assert {job.state for job in found} == {"COMPLETED"}
    return found


def test_gpu_rules_ask_for_one_gpu_of_the_type_and_others_for_none(
    jobs: list[cluster.Job], slurm: cluster.Cluster
) -> None:
    gpu = f"gres/gpu:{slurm.gpu_model}"
    gpu_rules = {name for name, rule in rules().items() if rule["gpu"]}
    for job in jobs:
        asked = [job.requested.get(gpu), job.allocated.get(gpu)]
        on_gpu = job.rule in gpu_rules
        assert asked == (["1", "1"] if on_gpu else [None, None]), job
        assert on_gpu or not any(name.startswith("gres/gpu") for name in job.allocated), job
        assert job.partition == (slurm.gpu_partition if on_gpu else slurm.cpu_partition), job
        assert slurm.account in (None, job.account)
    assert {job.rule for job in jobs} & gpu_rules
    assert {"examples", "tokens", "score"} <= {job.rule for job in jobs}


def test_results_are_those_of_a_run_without_slurm(folders: tuple[Path, Path]) -> None:
    """Perplexities, scores, lists and tables value by value; tensors byte by byte."""
    tables = compared(folders, "*.parquet")
    kinds = {part for name in tables for part in Path(name).parts}
    assert {"gold", "beta0.50", "perplexity.parquet", "embeddings.parquet", "tables"} <= kinds
    for name in tables:
        one, other = (values(folder / name) for folder in folders)
        assert one.equals(other), name
    for name in compared(folders, "*.safetensors"):
        one, other = (load_file(folder / name) for folder in folders)
        assert one.keys() == other.keys() != set()
        assert all(one[key].tobytes() == other[key].tobytes() for key in one), name


def compared(folders: tuple[Path, Path], pattern: str) -> list[str]:
    """The results of this kind, by their path in a folder: the same in both."""
    one, other = (
        sorted(str(path.relative_to(folder)) for path in (folder / "results").rglob(pattern))
        for folder in folders
    )
    assert one == other != []
    return one


def values(path: Path) -> pa.Table:
    """A table's columns, less those in which a training notes its speed."""
    table = parquet.read_table(path)
    return table.select([name for name in table.column_names if "second" not in name])
