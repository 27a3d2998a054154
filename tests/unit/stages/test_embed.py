"""The stage `embed`: the BOS is in every text, and so says nothing of it but how long it is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import pieces, schemas
from mamushi.artifacts.tables import read_metadata, read_table, write_table
from mamushi.cli import main
from mamushi.lm import batches
from mamushi.selection.metrics import spearman
from tests.support.stage_files import EXECUTION, FILES, write_base

WIDTH = 16


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def embedded(root: Path, *, skip_bos: bool, layer: int = -1) -> np.ndarray:
    how = {"pooling": "mean", "skip_bos": skip_bos, "layer": layer, "max_length": 16}
    chosen: dict[str, Any] = {"embedding": how | {"precision": "fp32"}, "training": None}
    read = [f"--{key}={root / name}" for key, name in FILES.items() if key != "trained"]
    out = root / "embeddings.parquet"
    written = [f"--out={out}", f"--execution={json.dumps(EXECUTION)}"]
    assert main(["embed", *read, *written, f"--settings={json.dumps(chosen)}"]) == 0
    vectors = read_table(out, schemas.EMBEDDINGS)["embedding"].combine_chunks()
    return np.asarray(vectors.values.to_numpy()).reshape(-1, WIDTH)


def test_layers_are_what_an_embedding_of_each_would_be(made: Path) -> None:
    how = {"pooling": "mean", "skip_bos": True, "max_length": 16, "precision": "fp32"}
    chosen = {"embedding": how, "training": None, "depths": [0.1, 0.5]}
    read = [f"--{key}={made / name}" for key, name in FILES.items() if key != "trained"]
    out = made / "layers.parquet"
    written = [f"--out={out}", f"--execution={json.dumps(EXECUTION)}"]
    assert main(["embed-layers", *read, *written, f"--settings={json.dumps(chosen)}"]) == 0
    found = read_table(out, schemas.LAYERS)
    # Of four blocks: after the second, and at least after the first.
    layers = read_metadata(out)["layers"]
    assert layers == {"depth_0.1": 1, "depth_0.5": 2}
    for name, layer in layers.items():
        vectors = found[name].combine_chunks().values.to_numpy().reshape(-1, WIDTH)
        np.testing.assert_array_equal(vectors, embedded(made, skip_bos=True, layer=layer))


STAGES: dict[str, dict[str, Any]] = {
    "embed": {"embedding": {"layer": -1}},
    "embed-layers": {"embedding": {}, "depths": [0.1, 0.5]},
}


def made_of(root: Path, stage: str, number: int) -> Path:
    """The stage's table from so many shards: from none of it, in one job, for 0."""
    out = root / f"{stage}-{number}.parquet"
    parts = [root / f"{stage}-{i + 1}-of-{number}.parquet" for i in range(number)]
    for part in parts:
        name = part.stem.removeprefix(f"{stage}-")
        assert run(root, stage, out=part, more=[f"--shard={name}"]) == 0
    # As Snakemake's record has them, by name: 10 before 2.
    assert run(root, stage, out=out, more=["--shards", *sorted(map(str, parts))]) == 0
    return out


def run(root: Path, stage: str, *, out: Path, more: list[str], **changes: Any) -> int:
    how = {"pooling": "mean", "skip_bos": True, "max_length": 16, "precision": "fp32"}
    chosen = {"training": None, **STAGES[stage], **changes}
    chosen["embedding"] = how | chosen["embedding"]
    read = [f"--{key}={root / name}" for key, name in FILES.items() if key != "trained"]
    # Five batches, fewer than the most shards.
    written = [f"--out={out}", f"--execution={json.dumps(EXECUTION | {'batch_tokens': 30})}"]
    return main([stage, *read, *written, f"--settings={json.dumps(chosen)}", *more])


@pytest.mark.parametrize(
    ("stage", "block", "numbers"),
    [("embed", 8, (1, 3, 11)), ("embed", pieces.BLOCK, (3,)), ("embed-layers", 8, (3,))],
)
def test_shards_together_are_what_one_job_writes(
    made: Path, monkeypatch: pytest.MonkeyPatch, stage: str, block: int, numbers: tuple[int, ...]
) -> None:
    monkeypatch.setattr(pieces, "BLOCK", block)
    monkeypatch.setattr(batches, "BLOCK", block)
    whole = made_of(made, stage, 0).read_bytes()
    for number in numbers:
        assert made_of(made, stage, number).read_bytes() == whole
    first, second = (made / f"{stage}-{name}.parquet" for name in ("1-of-3", "2-of-3"))
    rows = [set(read_table(each, schemas.SHARD)["row"].to_pylist()) for each in (first, second)]
    assert all(rows) and not rows[0] & rows[1]


def test_beside_the_first_process_no_table_is_written(tmp_path: Path) -> None:
    left = iter([(np.arange(2), {"embedding": np.zeros((2, 4), np.float16)})])
    out, texts = tmp_path / "out", {"id": pa.array(["a", "b"]), "domain": pa.array(["x", "x"])}
    pieces.write_pieces(out, schemas.EMBEDDINGS, left, texts, {}, beside=True)
    # All processes compute each piece together.
    assert not list(left)
    assert not out.exists()


def test_beside_the_first_process_no_shards_are_put_together(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_of(made, "embed", 1)
    monkeypatch.setenv("RANK", "1")
    out = made / "beside.parquet"
    assert run(made, "embed", out=out, more=["--shards", str(made / "embed-1-of-1.parquet")]) == 0
    assert not out.exists()


def test_what_is_not_the_tables_shards_is_refused(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_of(made, "embed", 3)
    parts = [made / f"embed-{i}-of-3.parquet" for i in (1, 2, 3)]
    out = made / "again.parquet"
    assert run(made, "embed", out=out, more=["--shards", *map(str, parts[:2])]) == 2
    assert "texts are in none of the 2 shards" in capsys.readouterr().err
    other = {"embedding": {"layer": 1}}
    assert run(made, "embed", out=parts[2], more=["--shard=3-of-3"], **other) == 0
    assert run(made, "embed", out=out, more=["--shards", *map(str, parts)]) == 2
    assert "is a shard that was made with other settings" in capsys.readouterr().err
    assert not out.exists()
    for name in ("4-of-3", "0-of-3", "second"):
        assert run(made, "embed", out=out, more=[f"--shard={name}"]) == 2
        assert f"'{name}' is no shard" in capsys.readouterr().err


def test_the_mean_leaves_out_the_bos_where_the_tokenizer_sets_one(made: Path) -> None:
    # At the input embeddings the mean with the BOS is (BOS + n * mean) / (n + 1), to the rounding.
    table = read_table(made / "tokens.parquet", schemas.TOKENS)
    sections = read_table(made / "examples.parquet", schemas.EXAMPLES)["section"]
    texts = table.filter([name == "inference" for name in sections.to_pylist()])
    n = np.array([len(row) - 1 for row in texts["tokens"].to_pylist()])
    without, with_it = (embedded(made, skip_bos=skip, layer=0) for skip in (True, False))
    bos = (n[:, None] + 1) * with_it - n[:, None] * without.astype(float)
    np.testing.assert_allclose(bos, np.broadcast_to(bos.mean(axis=0), bos.shape), atol=1e-3)
    # Along the BOS, that is the length.
    along = bos.mean(axis=0) / np.linalg.norm(bos.mean(axis=0))
    told = [spearman(vectors @ along, -n.astype(float)) for vectors in (without, with_it)]
    assert told[0] is not None and told[1] is not None and told[0] < told[1]


def test_the_mean_is_over_all_tokens_where_the_tokenizer_sets_no_bos(made: Path) -> None:
    everything = embedded(made, skip_bos=False)
    path = made / "tokens.parquet"
    stored = read_metadata(path)
    assert stored["bos_token_id"] is not None
    assert not np.array_equal(embedded(made, skip_bos=True), everything)
    table = read_table(path, schemas.TOKENS)
    write_table(path, schemas.TOKENS, table, metadata=stored | {"bos_token_id": None})
    np.testing.assert_array_equal(embedded(made, skip_bos=True), everything)
