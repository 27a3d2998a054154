"""The command and ``mamushi.rank`` in a process of its own give the same, bit for bit."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from tests.support.lab import write_lab
from tests.support.workflow import ROOT, environment, mamushi, output_of

pytestmark = pytest.mark.slow

SETTINGS = {"hidden": [64, 16], "batch_size": 32, "seeds_averaged": 2}
SCRIPT = """
import json, sys
import pyarrow.csv, pyarrow.parquet as pq
import torch
torch.set_num_threads(4)
torch.rand(300, 300) @ torch.rand(300, 300)
import mamushi
frame, vectors = pyarrow.csv.read_csv("comments.csv"), pq.read_table("vectors.parquet")["vector"]
given = {"text": "body", "id": "id", "forget": "source == 'theirs'"}
selector = {"kind": sys.argv[1], **json.loads(sys.argv[2])}
found = mamushi.rank(frame.append_column("v", vectors), **given, embeddings="v", selector=selector)
pq.write_table(found.scores, "scores.parquet")
print(json.dumps({beta: dict(each.manifest) for beta, each in found.lists.items()}, default=str))
"""


def test_a_session_gives_what_the_command_gives_whatever_its_threads(tmp_path: Path) -> None:
    rows = write_lab(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(len(rows), 96))
    vectors[:, 0] += 1.5 * np.array([source == "theirs" for _, _, source in rows])
    table = pa.table({"id": [name for name, _, _ in rows], "vector": list(vectors)})
    pq.write_table(table, tmp_path / "vectors.parquet")
    words = ["rank", "comments.csv", "--text", "body", "--id", "id", "--force"]
    words += ["--forget", "source == 'theirs'", "--embeddings", "vectors.parquet", "--selectors"]
    few = f"--config 'selectors={json.dumps({'mamushi': SETTINGS})}'"
    for selector, settings in (("stack", {}), ("mamushi", SETTINGS)):
        mamushi(tmp_path, *words, selector, *(["--snakemake-args", few] if settings else []))
        env = environment(OMP_NUM_THREADS=None, PYTHONPATH=str(ROOT / "workflow"))
        script = [sys.executable, "-c", SCRIPT, selector, json.dumps(settings)]
        printed, *_ = output_of(*script, cwd=tmp_path, env=env).splitlines()
        cell = {"dataset": "comments", "model": "vectors", "seed": 0, "selector": selector}
        scores = read_table(paths.under(tmp_path / "results", paths.SCORES, **cell), schemas.SCORES)
        assert pq.read_table(tmp_path / "scores.parquet").to_pylist() == scores.to_pylist()
        for beta, ours in json.loads(printed).items():
            where = {**cell, "beta": paths.beta(beta)}
            about = read_json(paths.under(tmp_path / "results", paths.MANIFEST, **where))
            differ = {key for key in about if ours[key] != about[key]}
            assert differ <= {"dataset", "model", "provenance"}
