"""The commands of every page, in the folder of whoever installed a wheel: no clone is around it.

What computes is asked for a dry run. What reads results is in ``test_command``, which makes some.
"""

import os
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.lab import write_lab
from tests.support.pages import commands
from tests.support.workflow import mamushi

COMPUTES = {"rank", "run", "unlearn"}
STARTS = COMPUTES | {"init", "plan"}
"""Commands that need no results."""
MINE = {
    "unlearning": {"unlearners": ["neggrad_plus"], "lists": {"agreed": "agreed.txt"}},
    "training": {"max_length": 32},
}
"""What the pages say of retraining and unlearning, added to what ``init`` writes."""
PAGES = {"/data/training.parquet": "training.csv", "/models/ours": "ours"}
"""Files of the pages, and which they are in the folder of the test."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the tables and the model that the pages name, and a configuration to retrain with."""
    folder = tmp_path_factory.mktemp("user")
    lines, rows = ["id,comment_id,body,toxicity,language"], write_lab(folder)
    for key, text, source in rows:
        lines.append(f"{key},{key},{text},{float(source == 'theirs')},en")
    vectors = {
        "id": [key for key, *_ in rows],
        "embedding": [[float(len(t))] * 4 for _, t, _ in rows],
    }
    pq.write_table(pa.table(vectors), folder / "vectors.parquet")
    for name in ("training.csv", "comments.csv"):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    (folder / "agreed.txt").write_text("c1\n", encoding="utf-8")
    (folder / ".snakemake").mkdir()
    table = ["training.csv", "--text", "body", "--id", "comment_id", "--forget", "toxicity > 0"]
    mamushi(folder, "init", *table, "--model", "ours", "--evaluation", "0.2")
    config = yaml.safe_load((folder / "mine.yaml").read_text(encoding="utf-8")) | MINE
    config["models"] |= {"clean": {"source": str(folder / "ours")}}
    config["models"]["ours"]["base"] = "clean"
    (folder / "own.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SLURM without a job, where this machine has one that the tests may not ask, or none."""
    for name in ("sbatch", "squeue", "sinfo"):
        (tmp_path / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    "words", [words for words in commands() if words[0] in STARTS], ids=shlex.join
)
def test_a_command_of_the_pages_works_without_a_clone(words: list[str], folder: Path) -> None:
    words = [str(folder / PAGES[word]) if word in PAGES else word for word in words]
    (folder / "mine.yaml").unlink(missing_ok=True)
    if "--text" not in words:
        shutil.copy(folder / "own.yaml", folder / "mine.yaml")
    dry = ["--dry-run"] if words[0] in COMPUTES and "--dry-run" not in words else []
    mamushi(folder, *words, *dry)
