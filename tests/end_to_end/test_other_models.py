"""A whole run of what is not the paper's: embeddings made elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from tests.support.lab import write_lab
from tests.support.workflow import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table and vectors of all its rows."""
    folder = tmp_path_factory.mktemp("lab")
    rows = write_lab(folder)
    vectors = np.random.default_rng(0).normal(size=(len(rows), 8))
    vectors[:, 0] += 2.0 * np.array([source == "theirs" for _, _, source in rows])
    ids = [name for name, _, _ in rows]
    table = pa.table({"doc": ids[::-1], "vec": list(vectors[::-1])})
    pq.write_table(table, folder / "vectors.parquet")
    return folder


def config(lab: Path) -> dict[str, Any]:
    vectors = {"path": str(lab / "vectors.parquet"), "id": "doc", "vector": "vec"}
    return {
        "grid": {
            "datasets": ["comments"],
            "models": ["theirs"],
            "seeds": [0],
            "budgets": [0.25],
            "selectors": ["lr_cos"],
        },
        "studies": None,
        "datasets": {
            "comments": {
                "kind": "table",
                "path": str(lab / "comments.csv"),
                "text": "body",
                "id": "id",
                "forget": {"where": "source == 'theirs'"},
                "sections": {"inference": 1.0},
                "limit": {"retain": 60},
            }
        },
        "models": {"theirs": {"embeddings": vectors}},
        "removal": {"ratio": "lr_cos"},
        "evidence": {
            "resamples": 5,
            "refits": {"whole": 1, "halves": 0},
        },
    }


def test_lists_and_evidence_of_vectors(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("removals", "evidence", directory=tmp_path, config=config(lab)).stdout
    assert "rule import_embeddings:" in said
    assert "rule tokens:" not in said and "rule embed:" not in said
    monkeypatch.chdir(tmp_path)
    cell = {"dataset": "comments", "model": "theirs", "seed": 0}
    scores = read_table(paths.SCORES.format(**cell, selector="lr_cos"), schemas.SCORES)
    ranked = scores.to_pandas().dropna(subset=["rank"])
    removal = paths.REMOVAL.format(**cell, selector="lr_cos", beta="0.25")
    assert len(ranked) // 4 == read_table(removal, schemas.REMOVALS).num_rows
    assert Path(paths.RANKING.format(**cell)).is_file()
    manifest = paths.MANIFEST.format(**cell, selector="lr_cos", beta="0.25")
    assert read_json(manifest)["provenance"]["embedding"] == {"id": "doc", "vector": "vec"}
    done = run("removals", "evidence", "--dry-run", directory=tmp_path, config=config(lab))
    assert "Nothing to be done" in done.stdout
    done = run(directory=tmp_path, config=config(lab), check=False)
    assert done.returncode != 0
    assert "models.theirs: has vectors alone and is no language model" in done.stdout
