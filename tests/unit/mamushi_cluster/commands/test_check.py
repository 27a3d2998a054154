"""``mamushi check``: a line for each mistake, and nothing is run."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.cli import main

CONFIG = """\
grid: {datasets: [d], models: [v], seeds: [0], budgets: [0.1], selectors: [lr_cos]}
datasets: {d: {kind: table, path: d.csv, forget: {where: kind == 1}, sections: {inference: 1.0}}}
models: {v: {embeddings: {path: v.parquet, id: id, vector: vector}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of forty texts with vectors, and a configuration."""
    rows = [f"words of {i},{i % 2}" for i in range(40)]
    Path("d.csv").write_text("\n".join(["text,kind", *rows, ""]), encoding="utf-8")
    vectors = np.random.default_rng(0).normal(size=(40, 3)).tolist()
    pq.write_table(pa.table({"id": [*range(1, 41)], "vector": vectors}), "v.parquet")
    Path("mine.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_what_is_right_is_said_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {*folder.rglob("*")}
    assert main(["check"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "datasets.d: 20 forget texts against 20 retain texts",
        "no mistake found in mine.yaml",
    ]
    assert {*folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("change", "mistakes"),
    [
        (("== 1", "== 2"), ["datasets.d: d.csv: the forget domain has no texts: 'kind == 2' is"]),
        (("[0]", "[-1, 0.5]"), ["grid.seeds[0]: Input should be", "grid.seeds[1]: Input"]),
    ],
)
def test_each_mistake_is_a_line(
    change: tuple[str, str],
    mistakes: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.yaml").write_text(CONFIG.replace(*change), encoding="utf-8")
    assert main(["check", "--json"]) == 1
    lines = json.loads(capsys.readouterr().out)["mistakes"]
    assert len(lines) == len(mistakes)
    for line, mistake in zip(sorted(lines), mistakes, strict=True):
        assert line.startswith(mistake)
