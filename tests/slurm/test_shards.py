"""Tables of vectors and of perplexities that several nodes share: the same bytes; a lost shard
alone runs again."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from tests.support import cluster
from tests.support.small_grid import CONFIG, DATASET, MODEL
from tests.support.workflow import run

CELL = {"dataset": DATASET, "model": MODEL, "seed": "0"}
TABLES = [
    paths.EMBEDDINGS.format(**CELL),
    paths.NLL.format(**CELL, arm="contaminated"),
]
READ = [paths.TRAINED.format(**CELL, arm="contaminated"), paths.TOKENS.format(**CELL)]
"""What is made on this machine, since other tests make it on SLURM."""


def cut(number: int) -> dict[str, Any]:
    return CONFIG | {"execution": CONFIG["execution"] | {"shards": number, "batch_tokens": 128}}


def test_shards_on_many_nodes_are_one_table(folder: Path, slurm: cluster.Cluster) -> None:
    run(*READ, directory=folder, config=cut(3))
    with open(folder / "said", "w", encoding="utf-8") as output:
        started = cluster.start(*TABLES, directory=folder, config=cut(3), output=output)
        lost = cluster.running(folder, "embed_shard", seconds=600)
        subprocess.run(["scancel", lost.id], check=True)
        assert started.wait(timeout=900) == 0, (folder / "said").read_text(encoding="utf-8")
    jobs = [job for job in cluster.settled(folder) if job.rule == "embed_shard"]
    assert Counter(job.state for job in jobs) == {"COMPLETED": 3, "CANCELLED": 1}
    assert len({job.wildcards for job in jobs if job.state == "COMPLETED"}) == 3
    gpu = f"gres/gpu:{slurm.gpu_model}"
    assert {job.requested.get(gpu) for job in jobs} == {"1"}
    assert not list((folder / "results").rglob("shards/*/*.parquet"))
    for number in (1, 8):
        alone = folder / f"alone-{number}"
        shutil.copytree(folder / "results", alone / "results")
        for table in TABLES:
            (alone / table).unlink()
        done = run(*TABLES, directory=alone, config=cut(number)).stdout
        for rule in ("embed_shard", "evaluate_shard"):
            assert done.count(f"rule {rule}:") == (number if number > 1 else 0)
        for table in TABLES:
            assert (alone / table).read_bytes() == (folder / table).read_bytes()
