"""Models that are no language models: embeddings made elsewhere.

The grid of the contracts has no such model, so that their rules have their contracts here.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.dry_runs import BEGAN, Snakemake

PATH = "raw/vectors.parquet"
CONFIG: dict[str, Any] = {
    "grid": {
        "datasets": ["made"],
        "models": ["theirs"],
        "seeds": [0],
        "budgets": [0.4],
        "selectors": ["random", "mamushi"],
    },
    "studies": {},
    "datasets": {"made": {"kind": "synthetic"}},
    "models": {
        "theirs": {"embeddings": {"path": PATH, "id": "doc", "vector": "vec"}},
    },
}
LANGUAGE = {"model_card", "tokens", "embed", "endpoint", "retrain", "evaluate"}


def write(folder: Path, number: float = 0.0) -> None:
    """The file of vectors, older than all that is made of them."""
    (folder / "raw").mkdir(exist_ok=True)
    pq.write_table(pa.table({"doc": ["a"], "vec": [[number]]}), folder / PATH)
    os.utime(folder / PATH, (BEGAN - 1000, BEGAN - 1000))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False), encoding="utf-8")
    write(folder)
    done = snakemake.finish(folder, targets=["removals", "evidence"])
    assert done["import_embeddings"] == 1
    assert done["evidence_tables"] == 1 and done["ranking"] == done["geometry"] == 1
    assert not LANGUAGE & set(done)
    return folder


def test_other_vectors_run_their_model_again_and_no_other(
    snakemake: Snakemake, finished: Path
) -> None:
    def models() -> Counter[str]:
        runs = snakemake.look(finished, targets=["removals"])["runs"]
        return Counter(wildcards["model"] for _, wildcards in runs if "model" in wildcards)

    assert models() == {}
    write(finished, number=1.0)
    assert set(models()) == {"theirs"}
    write(finished)


@pytest.mark.parametrize("target", ["all", "results/base/theirs/card.json"])
def test_what_needs_a_language_model_says_so_before_anything_runs(
    snakemake: Snakemake, finished: Path, target: str
) -> None:
    with pytest.raises(AssertionError, match=r"models\.\w+: has vectors alone"):
        snakemake.would_run(finished, targets=[target])
