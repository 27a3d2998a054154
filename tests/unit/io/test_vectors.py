"""Matrices in files without names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mamushi.io import vectors


def resident() -> float:
    """MiB that this process has of mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    # The folder may be in memory itself.
    kib = (int(line.split()[1]) for line in lines if line.startswith(("RssFile:", "RssShmem:")))
    return sum(kib) / 1024


@pytest.mark.parametrize("written_by", ["large_matrix", "memmap"])
def test_pages_of_a_large_matrix_are_let_go_and_read_again(
    written_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MAPPED", 0)
    shape = (40_000, 1024)
    if written_by == "memmap":
        matrix = np.asarray(np.memmap(tmp_path / "x", np.float16, "w+", shape=shape))
    else:
        matrix = vectors.large_matrix(shape, tmp_path)
    before = resident()
    matrix[:] = np.arange(shape[0], dtype=np.float16)[:, None]
    assert resident() - before > 50
    vectors.drop_pages(matrix)
    assert resident() - before < 20
    rows = np.arange(0, shape[0], 7)
    assert (vectors.take_rows(matrix, rows)[:, 3] == rows.astype(np.float16)).all()
    assert resident() - before < 50
