"""What past jobs took, out of the files that Snakemake's `benchmark:` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi_runs.forecast import benchmarks
from mamushi_runs.forecast.benchmarks import History
from tests.support.benchmarks import HEAD, write

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
    found = benchmarks.read(path)
    assert found is not None
    assert (found.wall, found.rss_mb) == (10.25, None)
    assert found.cpu == pytest.approx(5.0 * 10.25 / 10.0)


@pytest.mark.parametrize(
    "content", ["", HEAD, "s\tcpu_time\nNA\t1\n", "x\ny\n", "s\nnan\n", "s\n-1\n", "s\ninf\n"]
)
def test_what_is_no_benchmark_is_none(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(content, encoding="utf-8")
    assert benchmarks.read(path) is None
    path.write_bytes(b"\xff\xfe s")
    assert benchmarks.read(path) is None
    assert benchmarks.read(tmp_path / "none.tsv") is None


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
    assert benchmarks.cpu_seconds(wall, seen) == pytest.approx(cpu, rel=0.01)


def test_the_median_of_the_same_rule_model_and_selector_comes_first(tmp_path: Path) -> None:
    for seed, wall in (("0", 10.0), ("1", 30.0), ("2", 11.0)):
        put(tmp_path, "retrain", wall, wall, 500 + wall, seed=seed)
    put(tmp_path, "retrain", 99.0, selector="mamushi")
    put(tmp_path, "retrain", 77.0, model="large")
    put(tmp_path, "retrain", 55.0, dataset="other")
    past = History(PATTERNS, tmp_path).of("retrain", {**CELL, "seed": "7", "beta": "0.90"})
    assert past is not None
    assert (past.wall, past.rss_mb, past.dataset) == (11.0, 530.0, None)
    assert past.like == "same rule, model and data"


def test_then_other_selectors_then_other_datasets_and_never_another_model(tmp_path: Path) -> None:
    put(tmp_path, "retrain", 99.0, selector="mamushi")
    put(tmp_path, "retrain", 55.0, dataset="other")
    put(tmp_path, "retrain", 77.0, model="large")
    past = History(PATTERNS, tmp_path).of("retrain", CELL)
    assert past is not None and past.wall == 99.0
    assert "other selector" in past.like
    put(tmp_path, "embed", 5.0, dataset="other")
    past = History(PATTERNS, tmp_path).of("embed", CELL)
    assert past is not None and (past.wall, past.dataset) == (5.0, "other")
    assert "scaled from other" in past.like
    assert History(PATTERNS, tmp_path).of("embed", {**CELL, "model": "large"}) is None
    assert History(PATTERNS, tmp_path).of("nothing", CELL) is None


def test_a_rule_without_wildcards_has_its_own_file(tmp_path: Path) -> None:
    put(tmp_path, "tables", 2.0, 1.0)
    history = History(PATTERNS, tmp_path)
    past = history.of("tables", {})
    assert past is not None and past.wall == 2.0
    assert history.files == 1


def test_of_thousands_of_files_a_few_are_read(tmp_path: Path) -> None:
    for seed in range(100):
        put(tmp_path, "embed", 10.0 + seed, 1.0, seed=str(seed))
    history = History(PATTERNS, tmp_path)
    past = history.of("embed", {**CELL, "seed": "200"})
    assert past is not None
    assert history.files <= benchmarks.SAMPLE
    # From all over the list, and not its first few.
    assert past.wall == pytest.approx(60, abs=15)


def test_damaged_files_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "embed", 10.0, seed="1")
    (tmp_path / PATTERNS["embed"].format(**CELL)).write_text("nothing\n", encoding="utf-8")
    history = History(PATTERNS, tmp_path)
    past = history.of("embed", CELL)
    assert past is not None and past.wall == 10.0
    assert history.files == 1
