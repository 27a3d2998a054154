"""The stage `embed`: the BOS is in every text, and so says nothing of it but how long it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table
from mamushi.lm import embed as lm_embed
from mamushi.selection.metrics import spearman
from mamushi.stages import models
from tests.support.stage_files import command, texts_of, write_base

WIDTH = 16


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write_base(tmp_path)
    return tmp_path


def run(root: Path, embedding: dict[str, Any]) -> Path:
    """The table that the stage writes."""
    pooled = {"pooling": "mean", "max_length": 16, "precision": "fp32", **embedding}
    out = root / "embed.parquet"
    assert main(command("embed", {"embedding": pooled}, **texts_of(root), out=out)) == 0
    return out


def embedded(root: Path, *, skip_bos: bool, layer: int = -1) -> np.ndarray:
    out = run(root, {"skip_bos": skip_bos, "layer": layer})
    vectors = read_table(out, schemas.EMBEDDINGS)["embedding"].combine_chunks()
    return np.asarray(vectors.values.to_numpy()).reshape(-1, WIDTH)


def test_the_mean_leaves_out_the_bos_where_the_tokenizer_sets_one(base: Path) -> None:
    # At the input embeddings the mean with the BOS is (BOS + n * mean) / (n + 1), to the rounding.
    table = read_table(base / "tokens.parquet", schemas.TOKENS)
    sections = read_table(base / "examples.parquet", schemas.EXAMPLES)["section"]
    texts = table.filter([name == "inference" for name in sections.to_pylist()])
    n = np.array([len(row) - 1 for row in texts["tokens"].to_pylist()])
    without, with_it = (embedded(base, skip_bos=skip, layer=0) for skip in (True, False))
    bos = (n[:, None] + 1) * with_it - n[:, None] * without.astype(float)
    np.testing.assert_allclose(bos, np.broadcast_to(bos.mean(axis=0), bos.shape), atol=1e-3)
    # Along the BOS, that is the length.
    along = bos.mean(axis=0) / np.linalg.norm(bos.mean(axis=0))
    lengths = [spearman(vectors @ along, -n.astype(float)) for vectors in (without, with_it)]
    assert lengths[0] is not None and lengths[1] is not None and lengths[0] < lengths[1]


def test_a_killed_job_goes_on_behind_its_last_block(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    compute = lm_embed.embed

    def counted(model: Any, texts: Any, **options: Any) -> Any:
        if passes == [8]:
            passes.append(-1)
            raise RuntimeError
        passes.append(len(texts))
        return compute(model, texts, **options)

    monkeypatch.setattr(models, "BLOCK", 8)
    monkeypatch.setattr(lm_embed, "embed", counted)
    with pytest.raises(AssertionError):
        run(base, {"skip_bos": True, "layer": -1})
    assert not (base / "embed.parquet").exists()
    resumed = run(base, {"skip_bos": True, "layer": -1}).read_bytes()
    n = len(read_table(base / "embed.parquet", schemas.EMBEDDINGS))
    assert sum(passes[2:]) == n - 8 and not (base / "embed.parquet.blocks").exists()
    assert run(base, {"skip_bos": True, "layer": -1}).read_bytes() == resumed
