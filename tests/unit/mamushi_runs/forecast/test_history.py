"""What past jobs took, out of the files that Snakemake's `benchmark:` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi_runs.forecast import history
from mamushi_runs.forecast.history import History
from tests.support.benchmark_files import write

PATTERNS = {
    "retrain": "results/benchmarks/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.tsv",
    "embed": "results/benchmarks/embed/{dataset}/{model}/seed{seed}.tsv",
    "tables": "results/benchmarks/tables.tsv",
}
CELL = {"dataset": "jigsaw", "model": "small", "seed": "0", "selector": "random", "beta": "0.10"}


def put(
    root: Path, rule: str, wall: float, cpu: object = "NA", rss: object = "NA", **at: str
) -> None:
    write(root / PATTERNS[rule].format(**{**CELL, **at}), wall, cpu, rss)


def test_a_file_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("cpu_time\tnew\ts\n4.0\tx\t8.25\n5.0\tx\t10.25\n", encoding="utf-8")
    found = history.read(path)
    assert found is not None
    assert (found.wall, found.rss_mb) == (10.25, None)
    assert found.cpu == pytest.approx(5.0 * 10.25 / 10.0)


@pytest.mark.parametrize(
    "content",
    ["", "s\tcpu_time", "s\tcpu_time\nNA\t1\n", "x\ny\n", "s\nnan\n", "s\n-1\n", "s\ninf\n"],
)
def test_what_is_no_benchmark_is_none(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(content, encoding="utf-8")
    assert history.read(path) is None
    path.write_bytes(b"\xff\xfe s")
    assert history.read(path) is None
    assert history.read(tmp_path / "none.tsv") is None


@pytest.mark.parametrize(
    ("wall", "seen", "cpu"),
    [
        (0.3, None, 0.3),  # over before it was looked at
        (0.9, 0.0, 0.9),
        (2.4, 2.0, 2.4),  # last looked at after 2.0 s
        (10.0, 5.0, 5.0),
        (40.0, 15.5, 40.0),  # looked at after 15.5 s, then not before 45.5 s
        (50.0, 91.0, 100.0),  # two processors
        (3600.0, 3590.5, 3600.0),
    ],
)
def test_processor_time_after_the_last_look_is_added(
    wall: float, seen: float | None, cpu: float
) -> None:
    assert history.cpu_seconds(wall, seen) == pytest.approx(cpu, rel=0.01)


def walls(tmp_path: Path, rules: tuple[str, ...], **at: str) -> list[float]:
    return sorted(run.wall for run in History(PATTERNS, tmp_path).of(rules, {**CELL, **at}))


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
    assert (run.wall, run.rule, run.day[:2]) == (2.0, "tables", "20")


def test_of_many_files_a_few_are_read_and_damaged_ones_passed_over(tmp_path: Path) -> None:
    for seed in range(100):
        put(tmp_path, "embed", 10.0 + seed, seed=str(seed))
    (tmp_path / PATTERNS["embed"].format(**CELL)).write_text("nothing\n", encoding="utf-8")
    found = walls(tmp_path, ("embed",))
    assert 0 < len(found) < history.SAMPLE
    # From all over the list, and not its first few.
    assert sum(found) / len(found) == pytest.approx(60, abs=15)
