"""What a run takes, by rule: from benchmarks, from floating-point operations, and as text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.domains import CONTAMINATION, EVALUATION, FORGET, INFERENCE
from mamushi.artifacts.tables import write_table
from mamushi.configuration.complete import complete
from mamushi.errors import UserError
from mamushi_runs.forecast import account, ledger, rates, text, work
from mamushi_runs.forecast.forecast import Overhead, forecast
from mamushi_runs.forecast.graph import Graph, Job, Limits
from mamushi_runs.forecast.rates import Rate
from mamushi_runs.forecast.volumes import Volumes
from tests.support.benchmarks import write

ROOT = Path(__file__).parents[4]
BENCHMARK = "results/benchmarks/{rule}/{dataset}/{model}/seed{seed}.tsv"
NOTHING = Overhead(cpu=0.0, cpu_of_job=0.0, wall_of_job=0.0)


@pytest.fixture(scope="module")
def paper() -> dict[str, Any]:
    return complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def demo() -> dict[str, Any]:
    given = yaml.safe_load((ROOT / "profiles/demo/science.yaml").read_text(encoding="utf-8"))
    return complete(given)


def job(rule: str, *needs: int, gpus: int = 1, outputs: tuple[str, ...] = (), **at: str) -> Job:
    cell = {"dataset": "jigsaw", "model": "llama-3.1-8b", "seed": "0", **at}
    return Job(rule, work.known(rule), cell, None, outputs, needs, gpus=gpus, memory_mb=64000.0)


def made(
    jobs: list[Job],
    config: dict[str, Any],
    root: Path,
    rate: Rate | None = None,
    **limits: Any,
) -> dict[str, Any]:
    patterns = {one.rule: BENCHMARK.replace("{rule}", one.rule) for one in jobs}
    graph = Graph(jobs, Limits(**{"cores": 64, "gpus": 4, **limits}), patterns)
    return forecast(graph, config, rate or rates.rate(), root=root, overhead=NOTHING)


# --- operations and rates -------------------------------------------------------------------------


def test_the_papers_fine_tune_takes_what_the_paper_says(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    padded = made([job("beta0")], paper, tmp_path, rates.rate(padded=True))
    # 105 minutes; loading the model comes on top here.
    assert padded["rules"]["beta0"]["job_seconds"] / 60 == pytest.approx(105, abs=2)
    found = made([job("beta0")], paper, tmp_path)
    entry = found["rules"]["beta0"]
    # At the same rate without padding: Jigsaw's texts have half of the 128 tokens.
    assert entry["job_seconds"] / 60 == pytest.approx(53.5, abs=2)
    assert entry["sources"] == {"FLOP": 1}
    assert "H100" in found["rate"] and "26.6%" in found["rate"]


@pytest.mark.parametrize(
    ("model", "minutes"), [("llama-3.1-8b", 20), ("qwen-2.5-7b", 19), ("gemma-2-2b", 4.7)]
)
def test_the_floor_without_padding(
    model: str, minutes: float, paper: dict[str, Any], tmp_path: Path
) -> None:
    # 790 TFLOP/s in practice, which is 79.9% of the data sheet's.
    floor = rates.rate("h100", share=0.799, padded=False)
    found = made([job("beta0", model=model)], paper, tmp_path, floor)
    loading = 30 + 2 * work.Costs(paper, Volumes(paper, tmp_path)).size(model).parameters / 2e9
    seconds = found["rules"]["beta0"]["job_seconds"] - loading
    assert seconds / 60 == pytest.approx(minutes, rel=0.04)


def test_the_whole_grid_is_what_it_was_estimated_at(paper: dict[str, Any], tmp_path: Path) -> None:
    jobs = []
    for dataset in paper["grid"]["datasets"]:
        for model in paper["grid"]["models"]:
            at = {"dataset": dataset, "model": model}
            jobs += [job(rule, **at) for rule in ("contaminate", "gold", "beta0") * 5]
            jobs += [job("retrain", **at, beta=f"0.{b}0") for b in range(1, 10) for _ in range(40)]
    costs = work.Costs(paper, Volumes(paper, tmp_path))
    works = [costs.of(one.rule, one.wildcards) for one in jobs]
    floor = sum(one.flop / 790e12 + one.traffic / 3.3e12 for one in works) / 3600
    assert len(jobs) == 2250
    assert floor == pytest.approx(316, rel=0.03)
    assert sum(one.padded_flop for one in works) / (0.266 * 989e12) / 3600 == pytest.approx(
        1530, rel=0.03
    )
    padded = made(jobs, paper, tmp_path, rates.rate(padded=True))["gpu_seconds"] / 3600
    assert padded == pytest.approx(1550, rel=0.02)
    total = made(jobs, paper, tmp_path)["gpu_seconds"] / 3600
    assert total == pytest.approx(873, rel=0.02)


def test_fewer_texts_take_less_and_matched_steps_take_the_same(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    costs = work.Costs(paper, Volumes(paper, tmp_path))
    cell = job("retrain").wildcards
    low, high = (costs.of("retrain", {**cell, "beta": beta}) for beta in ("0.10", "0.90"))
    assert high.padded_flop < low.padded_flop
    model = {**paper["models"]["llama-3.1-8b"]}
    model["training"] = {**model["training"], "steps": "matched"}
    matched = {**paper, "models": {**paper["models"], "llama-3.1-8b": model}}
    costs = work.Costs(matched, Volumes(matched, tmp_path))
    low, high = (costs.of("retrain", {**cell, "beta": beta}) for beta in ("0.10", "0.90"))
    assert high == low


def test_a_trunk_is_computed_once_for_each_run(paper: dict[str, Any], tmp_path: Path) -> None:
    at = {"dataset": "newsgroups", "model": "qwen-2.5-7b", "unlearner": "salun", "beta": "0.10"}
    one = made([job("unlearn", **at)], paper, tmp_path)
    two = made([job("unlearn", **at), job("unlearn", **at, selector="random")], paper, tmp_path)
    assert one["gpu_seconds"] < two["gpu_seconds"] < 2 * one["gpu_seconds"]
    assert two["disk"]["trunks"] == one["disk"]["trunks"] > 1e9
    other = made([job("unlearn", **at), job("unlearn", **{**at, "seed": "1"})], paper, tmp_path)
    assert other["disk"]["trunks"] == pytest.approx(2 * one["disk"]["trunks"])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h100", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("nvidia_h100_pcie", "h100-pcie"),
        ("L40S", "l40s"),
        ("RTX 4090", "rtx4090"),
        ("v100", None),
    ],
)
def test_gpus_by_the_names_that_clusters_give_them(name: str, key: str | None) -> None:
    assert rates.known(name) == key


@pytest.mark.parametrize("wrong", [{"name": "v100"}, {"share": 0.0}, {"share": 26.6}])
def test_a_gpu_that_is_not_known_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"--gpu|--share"):
        rates.rate(**wrong)


# --- benchmarks -----------------------------------------------------------------------------------


def test_benchmarks_go_before_operations_and_are_scaled_to_another_dataset(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    cell = {"dataset": "jigsaw", "model": "llama-3.1-8b", "rule": "beta0"}
    write(tmp_path / BENCHMARK.format(**cell, seed=3), 1000.0, 995.5, 9000.0)
    found = made(
        [
            job("beta0"),
            job("beta0", dataset="newsgroups"),
            job("gold"),
            job("beta0", model="gemma-2-2b"),
        ],
        paper,
        tmp_path,
    )
    sources = found["rules"]["beta0"]["sources"]
    assert sources == {
        "benchmarks: same rule, model and data": 1,
        "benchmarks: same rule and model, scaled from jigsaw": 1,
        "FLOP": 1,
    }
    costs = work.Costs(paper, Volumes(paper, tmp_path))
    full, other = (
        costs.of("beta0", job("beta0", dataset=d).wildcards) for d in ("jigsaw", "newsgroups")
    )
    times = 1000 * other.padded_flop / full.padded_flop
    assert times < 150
    gold = found["rules"]["gold"]
    assert gold["sources"] == {"benchmarks: beta0, scaled by FLOP": 1}
    assert gold["job_seconds"] == pytest.approx(1000 * (1 - 0.1017), rel=0.01)
    assert gold["memory_mb"] == 9000.0 and gold["measured"]
    assert found["benchmarks"] == 1
    counted = forecast(
        Graph([job("beta0")], Limits()), paper, rates.rate(), root=tmp_path, benchmarks=False
    )
    assert counted["rules"]["beta0"]["sources"] == {"FLOP": 1}


def test_what_another_workflow_adds_is_assumed_and_prefixed_rules_are_ours(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    prefixed = replace(job("beta0"), rule="mamushi_beta0", known=work.known("mamushi_beta0"))
    foreign = Job("align", work.known("align"), {"sample": "a"}, None, ("x",), ())
    # A rule that happens to end as one of ours does, of something else.
    alike = Job("read_score", work.known("read_score"), {"model": "car"}, None, ("y",), ())
    found = made([prefixed, foreign, alike], paper, tmp_path)
    assert found["rules"]["mamushi_beta0"]["sources"] == {"FLOP": 1}
    for rule in ("align", "read_score"):
        assert found["rules"][rule]["sources"] == {"assumed: a minute": 1}


def test_a_target_is_no_job(paper: dict[str, Any], tmp_path: Path) -> None:
    target = replace(job("beta0", 0), rule="all", known=None, idle=True)
    found = made([job("beta0"), target], paper, tmp_path)
    assert found["jobs"] == 1
    assert list(found["rules"]) == ["beta0"]


# --- memory and disk ------------------------------------------------------------------------------


def test_disk_counts_tensors_checkpoints_and_what_keep_checkpoints_adds(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    trained = 4 * 1.705009152e9
    tensors = paths.TRAINED.format(dataset="jigsaw", model="llama-3.1-8b", seed=0, endpoint="gold")
    jobs = [job("gold", outputs=(tensors, "a/card.json"))]
    jobs += [job("retrain", 0, beta="0.10", outputs=("a/card.json",)) for _ in range(4)]
    disk = made(jobs, paper, tmp_path, gpus=2)["disk"]
    small = 5 * work.SMALL_FILE
    assert disk["end"] == pytest.approx(trained + small)
    assert disk["end_kept"] == pytest.approx(5 * trained + small)
    # Two jobs at a time, each with its checkpoint (weights, two moments) and the next one.
    assert disk["checkpoints"] == pytest.approx(2 * 2 * 3 * trained)
    assert disk["peak"] == pytest.approx(trained + 12 * trained, rel=0.001)
    assert disk["peak_kept"] == pytest.approx((1 + 12 + 4) * trained, rel=0.001)
    kept = {**paper, "keep_checkpoints": True}
    at = {"dataset": "jigsaw", "model": "llama-3.1-8b", "seed": 0, "beta": "0.10"}
    path = paths.RETRAINED_TENSORS.format(**at, selector="random")
    asked = [jobs[0], *(replace(one, outputs=(*one.outputs, path)) for one in jobs[1:])]
    assert made(asked, kept, tmp_path, gpus=2)["disk"] == pytest.approx(disk)


def test_what_is_there_already_counts(paper: dict[str, Any], tmp_path: Path) -> None:
    path = "results/runs/jigsaw/llama-3.1-8b/seed0/gold/trained.safetensors"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(bytes(12345))
    done = job("gold", outputs=(path,))
    graph = Graph([], Limits(), there=((done, path),))
    disk = forecast(graph, paper, rates.rate(), root=tmp_path)["disk"]
    assert disk["end"] == disk["peak"] == 12345


def test_memory_adds_up_on_one_machine_and_not_on_a_cluster(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    jobs = [job("beta0", seed=str(seed)) for seed in range(4)]
    assert made(jobs, paper, tmp_path, gpus=2)["memory_mb"] == 2 * 64000
    cluster = made(jobs, paper, tmp_path, gpus=2, cluster=True)
    assert (cluster["memory_mb"], cluster["memory_of"]) == (64000, "a job")


def test_cells_that_a_checkpoint_may_add(paper: dict[str, Any], tmp_path: Path) -> None:
    at = {"dataset": "newsgroups", "model": "qwen-2.5-7b", "unlearner": "salun"}
    refine = job("refine", gpus=0, **at, selector="random")
    # Between 0.1 and 0.2 lies 0.15, for five seeds.
    found = made([refine], paper, tmp_path)
    assert found["more"]["jobs"] == 5
    assert found["more"]["gpu_seconds"] > 0
    assert "up to 5 jobs more" in text.plan(found)
    plain = {**paper, "unlearning": {**paper["unlearning"], "fine": None}}
    assert made([refine], plain, tmp_path)["more"]["jobs"] == 0


# --- volumes --------------------------------------------------------------------------------------


def test_volumes_come_from_what_has_been_made(demo: dict[str, Any], tmp_path: Path) -> None:
    volumes = Volumes(demo, tmp_path)
    assert volumes.texts("synthetic", INFERENCE, [FORGET]) == 400
    assert volumes.source("synthetic") == "the configuration"
    assert volumes.tokens("synthetic", "tiny-llama", 48) == pytest.approx(18 * 1.2)
    card = tmp_path / paths.DATA_CARD.format(dataset="synthetic")
    card.parent.mkdir(parents=True)
    sections = {INFERENCE: {"forget": 7, "retain": 9}, CONTAMINATION: {"forget": 1, "retain": 1}}
    card.write_text(json.dumps({"counts": {"sections": sections}}), encoding="utf-8")
    cache = tmp_path / paths.TOKENS.format(dataset="synthetic", model="tiny-llama")
    lengths = [10, 10, 20, 40]
    rows = {"id": [str(n) for n in range(4)], "tokens": [list(range(n)) for n in lengths]}
    write_table(
        cache,
        schemas.TOKENS,
        {"id": pa.array(rows["id"]), "tokens": pa.array(rows["tokens"], pa.list_(pa.int32()))},
        metadata={
            "texts": 4,
            "tokens": 80,
            "histogram": {"edges": [0, 16, 32, 48], "counts": [2, 1, 1]},
        },
    )
    volumes = Volumes(demo, tmp_path)
    assert volumes.texts("synthetic", INFERENCE) == 16
    assert volumes.texts("synthetic", EVALUATION) == 0
    assert volumes.source("synthetic") == "its card"
    assert volumes.tokens("synthetic", "tiny-llama", 48) == pytest.approx(20)
    assert volumes.tokens("synthetic", "tiny-llama", 10) == pytest.approx(9, abs=1)
    assert volumes.longest("synthetic", "tiny-llama", 30) == 30
    assert volumes.longest("synthetic", "tiny-llama", 100) == 48
    cache.write_bytes(cache.read_bytes()[:-20])
    assert Volumes(demo, tmp_path).tokens("synthetic", "tiny-llama", 48) == pytest.approx(21.6)


def test_a_table_that_was_never_read_is_sized_by_its_bytes(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_bytes(bytes(1_000_000))
    given = {
        "grid": {"datasets": ["d"], "models": ["m"], "seeds": [0], "budgets": [0.1]},
        "studies": None,
        "datasets": {
            "d": {
                **{"kind": "table", "path": str(table), "text": "t"},
                **{"forget": {"column": "c", "values": ["x"]}, "limit": {"forget": 100}},
                "sections": {"inference": 0.5, "evaluation": 0.5},
            }
        },
        "models": {"m": {"source": "meta-llama/Llama-3.1-8B", "revision": "0" * 40}},
    }
    given["grid"]["selectors"] = ["random", "mamushi"]
    whole = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    merged = {**whole, **given, "unlearning": {}, "probe": {}}
    volumes = Volumes(complete(merged), tmp_path)
    assert volumes.texts("d", INFERENCE, [FORGET]) == 100
    assert volumes.texts("d", INFERENCE) == pytest.approx(1000 * 0.8 + 100)
    assert "bytes a text" in volumes.source("d")


# --- text and records -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0.0 s"),
        (8.04, "8.0 s"),
        (61, "61 s"),
        (600, "10 min"),
        (6000, "1.7 h"),
        (5.5e6, "1,528 h"),
    ],
)
def test_times_have_the_unit_that_suits_them(seconds: float, said: str) -> None:
    assert text.clock(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 kB"), (20_000, "20 kB"), (6.82e9, "6.8 GB"), (1.3e13, "13.0 TB")]
)
def test_sizes_have_the_unit_that_suits_them(count: float, said: str) -> None:
    assert text.size(count) == said


def test_the_plan_says_for_every_rule_what_it_is_from(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    remove = replace(job("remove", 0, gpus=0, beta="0.10", selector="random"), memory_mb=None)
    found = made([job("beta0"), remove], paper, tmp_path)
    said = text.plan(found)
    lines = said.splitlines()
    widths = {len(line) for line in lines[1:2]}
    assert widths == {len(lines[1])}
    assert next(line for line in lines if line.startswith("beta0")).endswith("FLOP")
    assert next(line for line in lines if line.startswith("remove")).endswith("assumed")
    for word in ("Wall time", "64 cores and 4 GPUs", "Memory", "with keep_checkpoints", "8.03"):
        assert word in said
    line = text.line(found)
    assert "2 jobs" in line and "without any benchmark" in line and "\n" not in line
    assert text.plan(made([], paper, tmp_path)) == "Nothing to be done."
    json.dumps(found, allow_nan=False)


def actual(**changes: Any) -> dict[str, Any]:
    return {
        **{"succeeded": True, "cluster": False, "done": 10, "failed": 0, "wall_seconds": 60.0},
        **{"cpu_seconds": 107.0, "jobs_cpu_seconds": 100.0, "begun_cpu_seconds": 2.0},
        **{"rules": {"beta0": {"jobs": 10, "cpu_seconds": 100.0, "wall_seconds": 99.0}}, **changes},
    }


def test_the_outcome_stands_beside_the_forecast(paper: dict[str, Any], tmp_path: Path) -> None:
    found = made([job("beta0"), job("gold", 0)], paper, tmp_path)
    said = text.outcome(found, actual(failed=1))
    assert "1 failed" in said
    beta0 = next(line for line in said.splitlines() if line.startswith("beta0")).split()
    assert beta0[1:3] == ["1", "10"]
    assert next(line for line in said.splitlines() if line.startswith("gold")).split()[2] == "0"
    few = text.outcome(found, actual(), longest=1)
    assert "1 others" in few


def test_past_runs_tell_what_snakemake_itself_takes(tmp_path: Path) -> None:
    assert ledger.overhead(3.0, tmp_path).cpu_of_job == Overhead().cpu_of_job
    folder = tmp_path / ledger.FOLDER
    for number, one in enumerate(
        [actual(), actual(cpu_seconds=112.0), actual(cpu_seconds=117.0), actual(succeeded=False)]
    ):
        ledger.write(folder / f"2026010{number}T000000-1.json", {"jobs": 10}, one)
    (folder / "20260109T000000-1.json").write_text("{")
    ledger.write(folder / "20260108T000000-1.json", {"jobs": 10}, None)
    learned = ledger.overhead(3.0, tmp_path)
    assert learned.cpu == 3.0
    assert learned.cpu_of_job == pytest.approx(1.0)
    ledger.write(folder / "20260107T000000-1.json", {}, actual(cluster=True, cpu_seconds=1e6))
    ledger.write(folder / "20260106T000000-1.json", {}, actual(done=1, cpu_seconds=1e6))
    assert ledger.overhead(3.0, tmp_path).cpu_of_job == pytest.approx(1.0)


def test_a_run_without_a_begin_has_no_end() -> None:
    assert account.end(object(), succeeded=True) is None
