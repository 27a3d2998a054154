"""The stage `embed`: what it keeps when it is killed."""

from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table
from mamushi.lm import embed as lm_embed
from mamushi.stages import models
from tests.support.stage_files import command, texts_of, write_base


def run(root: Path) -> Path:
    """The table that the stage writes."""
    pooled: dict[str, Any] = {"pooling": "mean", "max_length": 16, "precision": "fp32"}
    pooled |= {"skip_bos": True, "layer": -1}
    out = root / "embed.parquet"
    assert main(command("embed", {"embedding": pooled}, **texts_of(root), out=out)) == 0
    return out


def test_a_killed_job_goes_on_behind_its_last_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_base(tmp_path)
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
        run(tmp_path)
    assert not (tmp_path / "embed.parquet").exists()
    resumed = run(tmp_path).read_bytes()
    n = len(read_table(tmp_path / "embed.parquet", schemas.EMBEDDINGS))
    assert sum(passes[2:]) == n - 8 and not (tmp_path / "embed.parquet.blocks").exists()
    assert run(tmp_path).read_bytes() == resumed
