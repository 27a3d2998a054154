"""What past jobs took, out of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi_runs.forecast import history
from mamushi_runs.forecast.history import History
from tests.support.logs import write

PATTERNS = {
    "retrain": "results/logs/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    "embed": "results/logs/embed/{dataset}/{model}/seed{seed}.log",
    "tables": "results/logs/tables.log",
}
CELL = {"dataset": "jigsaw", "model": "small", "seed": "0", "selector": "random", "beta": "0.10"}


def put(root: Path, rule: str, wall: float, **at: str) -> None:
    write(root / PATTERNS[rule].format(**{**CELL, **at}), wall)


def test_a_log_without_its_last_line_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    assert history.read(path) is None
    path.write_text("mamushi embed: error: no texts\n", encoding="utf-8")
    assert history.read(path) is None
    write(path, 8.25, 12.5, 900)
    # What a library wrote, in whatever encoding.
    path.write_bytes(b"\xff\xfe\x00 12%\r\n" + path.read_bytes())
    found = history.read(path, "embed")
    assert found is not None
    assert (found.rule, found.used) == ("embed", (8.25, 12.5, 900))


def walls(tmp_path: Path, rules: tuple[str, ...], **at: str) -> list[float]:
    return sorted(run.used.wall for run in History(PATTERNS, tmp_path).of(rules, {**CELL, **at}))


def test_jobs_that_are_most_alike_come_first_and_never_another_model(tmp_path: Path) -> None:
    put(tmp_path, "retrain", 77.0, model="large")
    assert walls(tmp_path, ("retrain",)) == []
    put(tmp_path, "retrain", 55.0, dataset="other")
    assert walls(tmp_path, ("retrain",)) == [55.0]
    put(tmp_path, "retrain", 99.0, selector="mamushi")
    assert walls(tmp_path, ("retrain",)) == [99.0]
    for seed, wall in (("0", 10.0), ("1", 30.0), ("2", 11.0)):
        put(tmp_path, "retrain", wall, seed=seed)
    assert walls(tmp_path, ("retrain",), seed="7", beta="0.90") == [10.0, 11.0, 30.0]
    # The first of several rules that has any.
    put(tmp_path, "embed", 5.0)
    assert walls(tmp_path, ("nothing", "embed", "retrain")) == [5.0]
    assert walls(tmp_path, ("tables",)) == []


def test_a_rule_without_wildcards_has_its_own_file(tmp_path: Path) -> None:
    put(tmp_path, "tables", 2.0)
    (run,) = History(PATTERNS, tmp_path).of(["tables"], {})
    assert (run.used.wall, run.rule, run.day[:2]) == (2.0, "tables", "20")


def test_of_many_files_a_few_are_read_and_damaged_ones_passed_over(tmp_path: Path) -> None:
    for seed in range(100):
        put(tmp_path, "embed", 10.0 + seed, seed=str(seed))
    (tmp_path / PATTERNS["embed"].format(**CELL)).write_text("nothing\n", encoding="utf-8")
    found = walls(tmp_path, ("embed",))
    assert 0 < len(found) < history.SAMPLE
    # From all over the list, and not its first few.
    assert sum(found) / len(found) == pytest.approx(60, abs=15)
