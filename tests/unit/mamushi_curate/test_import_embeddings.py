"""Vectors that were made elsewhere: what is taken, and one line for each file that does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from mamushi.cli import main
from mamushi.io import digests, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi_curate.vectors.stages import vector_files
from tests.support.stage_files import command, examples

WIDTH = 6


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Examples, one copy of one of them, and a card of two rows more than these."""
    columns = examples()
    write_table(tmp_path / "examples.parquet", schemas.EXAMPLES, columns)
    copies = {
        "id": ["copy"],
        "kept_id": [columns["id"][0]],
        "reason": ["exact"],
        "text_sha256": [""],
    }
    write_table(tmp_path / "duplicates.parquet", schemas.DUPLICATES, copies)
    write_json(tmp_path / "data.json", {"counts": {"read": len(columns["id"]) + 3}})
    return tmp_path


def everything() -> tuple[list[str], np.ndarray]:
    """Ids and vectors of all texts, the copy, and the two rows that are in neither table."""
    ids = [*examples()["id"], "copy", "empty", "beyond"]
    order = np.random.default_rng(1).permutation(len(ids))
    vectors = np.random.default_rng(2).normal(size=(len(ids), WIDTH)).astype(np.float32)
    return [ids[i] for i in order], vectors


def write(path: Path, ids: list[Any], vectors: Any, kind: pa.DataType | None = None) -> None:
    column = pa.array(list(vectors), kind or pa.list_(pa.float32()))
    # The vectors first: columns go by name.
    pq.write_table(pa.table({"vec": column, "name": ids}), path, row_group_size=7)


def run(root: Path, **inputs: str) -> int:
    (root / "vectors").mkdir(exist_ok=True)
    settings = {"embedding": {"id": "name", "vector": "vec"}, "inputs": inputs}
    tables = ("examples", "duplicates", "embeddings")
    examples, duplicates, out = (root / f"{name}.parquet" for name in tables)
    shards = vector_files({"embeddings": {"path": str(root / "vectors")}})
    vectors = shards if shards[0].is_file() else [root / "vectors.parquet"]
    read = {"examples": examples, "duplicates": duplicates, "vectors": vectors}
    read["data_card"] = root / "data.json"
    return main(command("import-embeddings", settings, **read, out=out))


def check(root: Path, ids: list[str], vectors: np.ndarray) -> None:
    table = read_table(root / "embeddings.parquet", schemas.EMBEDDINGS)
    columns = examples()
    rows = [i for i, section in enumerate(columns["section"]) if section == "inference"]
    assert table["id"].to_pylist() == [columns["id"][i] for i in rows]
    assert table["domain"].to_pylist() == [columns["domain"][i] for i in rows]
    by_id = dict(zip(ids, vectors.astype(np.float16), strict=True))
    np.testing.assert_array_equal(
        np.array(table["embedding"].to_pylist(), dtype=np.float16),
        np.array([by_id[columns["id"][i]] for i in rows]),
    )


@pytest.mark.parametrize("kind", [pa.list_(pa.float64(), WIDTH), pa.large_list(pa.float16())])
def test_vectors_come_in_the_order_of_the_texts(base: Path, kind: pa.DataType) -> None:
    ids, vectors = everything()
    vectors = vectors.astype(np.float16).astype(np.float32)
    write(base / "vectors.parquet", ids, vectors.astype(kind.value_type.to_pandas_dtype()), kind)
    assert run(base) == 0
    check(base, ids, vectors)
    stored = read_metadata(base / "embeddings.parquet")
    assert stored["inputs"]["vectors/0"] == digests.of(base / "vectors.parquet")


def write_shards(folder: Path, ids: list[Any], vectors: Any, count: int) -> None:
    """Shards in turn of Parquet and of safetensors."""
    folder.mkdir()
    for at, rows in enumerate(np.array_split(np.arange(len(ids)), count)):
        names, part = [ids[i] for i in rows], np.array([vectors[i] for i in rows])
        path = folder / f"part-{at}.{('parquet', 'safetensors')[at % 2]}"
        if at % 2:
            save_file({"vec": part}, path)
            path.with_suffix(".txt").write_text("\n".join(names), encoding="utf-8")
        else:
            write(path, names, part)


def test_shards_come_in_the_order_of_the_texts(base: Path) -> None:
    ids, vectors = everything()
    write_shards(base / "vectors", ids, vectors, 5)
    assert run(base) == 0
    check(base, ids, vectors)


@pytest.mark.parametrize(
    ("name", "new", "message"),
    [
        ("vectors.parquet", "0" * 64, "changed since this run began"),
        ("if0", np.nan, "the vector of 'if0' has NaN, infinity"),
        ("if0", "ef0-again", "1 of the 21 texts that are ranked have no vector"),
        ("copy", "stranger", "3 of its ids are not in the dataset, the first is"),
        ("empty", "if0", "the id 'if0' is there more than once"),
    ],
)
def test_ids_values_and_files_that_do_not_fit_are_one_line(
    base: Path, capsys: pytest.CaptureFixture[str], name: str, new: Any, message: str
) -> None:
    ids: list[Any]
    ids, vectors = everything()
    digest = {name: new} if name == "vectors.parquet" else {}
    if isinstance(new, float):
        vectors[ids.index(name), 2] = new
    elif not digest:
        ids[ids.index(name)] = new
    write(base / "vectors.parquet", ids, vectors)
    assert run(base, **digest) in (1, 2)
    said = capsys.readouterr().err.strip()
    assert message in said and len(said.splitlines()) == 1
    assert not (base / "embeddings.parquet").exists()
