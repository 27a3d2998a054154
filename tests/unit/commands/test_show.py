"""``mamushi show``: what was ranked, and what the list is worth."""

from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.io import paths
from tests.support.ranked_files import (
    BOUND,
    CELL,
    CHANCE,
    STRONG,
    write_ranked,
)


def test_lists_verdict_examples_and_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "results"
    write_ranked(root, selectors=("lr_cos", "mamushi", "random"))
    figure = paths.under(root, paths.CELL_FIGURE_PNG, **CELL, figure="diagnostics")
    for file in (figure, page := paths.under(root, paths.RANKING, **CELL)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert main(["show", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    lists = f"{root}/runs/texts/ours/seed0/removals"
    assert lines[:7] == [
        "texts, ours, seed 0",
        "  ranked    20 forget texts, against 30 to keep",
        f"  mamushi: {STRONG}",
        f"  list      2 texts: {lists}/mamushi/beta0.10.parquet",
        f"            check the list before deleting: {BOUND}",
        f"  list      10 texts and 3 copies: {lists}/mamushi/beta0.50.parquet",
        f"            check the list before deleting: {BOUND}",
    ]
    assert f"  list      2 texts: {lists}/lr_cos/beta0.10.parquet" in lines
    # What nobody is to act on says so, gets no advice, and looks like no list to take.
    compared = lines.index(f"  random: {CHANCE}")
    assert lines[compared + 1].startswith("  mamushi, first to go")
    first = lines.index("  mamushi, first to go (rank, score, text)")
    assert lines[first + 1].startswith("          1    5.00  Well, d***! \ufffd[31mred\ufffd long")
    assert lines[first + 1].endswith("…")
    assert lines[first + 6 : first + 11] == [
        "  mamushi, where the largest list ends: 10 of 20",
        "          9    1.00  text of f8",
        "         10    0.50  text of f9",
        "         11    0.00  stays  text of f10",
        "         12   -0.50  stays  text of f11",
    ]
    assert lines[first + 11 :] == [
        f"  figure    {figure}",
        f"  page      {page}",
        f"  remove    mamushi apply {lists}/mamushi/beta0.10.parquet --data DATA --out FILE",
    ]
