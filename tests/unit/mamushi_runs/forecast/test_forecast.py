"""What a run takes, by rule: from operations and sizes, and as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE
from mamushi_runs.commands import plan
from mamushi_runs.forecast import forecast, rates, work
from mamushi_runs.forecast.forecast import CORES, QUEUE, Graph, Job
from mamushi_runs.forecast.rates import Rate
from mamushi_runs.forecast.work import Volumes
from tests.support.workflow import ROOT


@pytest.fixture(scope="module")
def paper() -> dict[str, Any]:
    return complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def demo() -> dict[str, Any]:
    given = yaml.safe_load((ROOT / "profiles/demo/science.yaml").read_text(encoding="utf-8"))
    return complete(given)


def job(rule: str, *needs: int, gpus: int = 1, outputs: tuple[str, ...] = (), **at: str) -> Job:
    cell = {"dataset": "jigsaw", "model": "llama-3.1-8b", "seed": "0", **at}
    uses = {CORES: 1.0, QUEUE: 1.0, "gpu": float(gpus), "licence": 2.0}
    known = work.known(rule) or rule
    return Job(rule, known, cell, outputs, needs, uses, gpus=gpus, memory_mb=64000.0)


def made(
    jobs: list[Job],
    config: dict[str, Any],
    root: Path,
    rate: Rate | None = None,
    cluster: bool = False,
    **limits: int,
) -> dict[str, Any]:
    return forecast.forecast(Graph(jobs, limits, cluster), config, rate, root=str(root), own=0)


def test_the_papers_fine_tune_takes_what_the_paper_says_less_the_padding(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    flop = work.Costs(paper, Volumes(paper, tmp_path)).of("beta0", job("beta0").wildcards).flop
    # 105 minutes with 128 tokens to each text; Jigsaw's have 61.
    assert flop / rates.rate("h100").flops / 60 * 128 / 61 == pytest.approx(105, abs=2)
    found = made([job("beta0")], paper, tmp_path)
    entry = found["rules"]["beta0"]
    # The share is of whole fine-tunes: the optimizer adds nothing to it, starting does.
    assert entry["gpu_seconds"] == pytest.approx(flop / rates.rate().flops + forecast.GPU_START)
    assert entry["sources"] == {"FLOP on h100": 1}
    assert "H100" in found["rate"] and "26.6%" in found["rate"] and "assumed" in found["rate"]


def test_a_shard_is_its_share_of_the_work_and_what_joins_them_none(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    def of(number: int, **at: str) -> work.Work:
        cut = {**paper, "execution": {**paper["execution"], "shards": number}}
        return work.Costs(cut, Volumes(cut, tmp_path)).of("embed", job("embed", **at).wildcards)

    whole = of(1).flop
    assert of(8, scatteritem="2-of-8").flop == pytest.approx(whole / 8) and whole > 0
    assert of(8).flop == 0 and of(8).seconds > 0


@pytest.mark.parametrize(
    ("kind", "texts", "width", "seconds"),
    [
        # Measured on one core of an AMD EPYC, on synthetic embeddings of which 12% are forget.
        ("mamushi", 24_783, 64, 26.1),
        ("mamushi", 6_000, 2304, 18.0),
        ("mamushi_lr", 6_000, 2304, 7.7),
        ("lexical", 4_000, 256, 3.3),
        ("mamushi_words", 20_000, 64, 1.6),
        ("lr_maha", 80_000, 2304, 25.2),
        ("kcenter", 80_000, 2304, 7.2),
        ("random", 80_000, 2304, 2.5),
    ],
)
def test_a_ranking_takes_what_its_size_says(
    kind: str, texts: int, width: int, seconds: float, paper: dict[str, Any]
) -> None:
    settings = {"kind": kind, **paper["selectors"].get(kind, {}), "seeds_averaged": 1}
    counted = work.score_seconds(settings, texts, 0.1 * texts, width)
    assert seconds / 2 < counted < 2 * seconds
    if kind == "mamushi_lr":
        settings["seeds_averaged"] = 40
        assert 30 * counted < work.score_seconds(settings, texts, 0.1 * texts, width)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *[("h100", "h100"), ("NVIDIA H100 80GB HBM3", "h100"), ("nvidia_h100_pcie", "h100-pcie")],
        *[("L40S", "l40s"), ("RTX 4090", "rtx4090"), ("v100", None)],
        *[("h1000", None), ("L40", None), ("gpu:h100:4", "h100"), ("A100-SXM4-40GB", "a100")],
    ],
)
def test_gpus_by_the_names_that_clusters_give_them(name: str, key: str | None) -> None:
    assert rates.known(name) == key


def test_a_gpu_that_is_not_known_is_named() -> None:
    with pytest.raises(UserError, match="--gpu: unknown GPU 'v100'"):
        rates.rate("v100")


def test_what_another_workflow_adds_is_assumed_and_prefixed_rules_are_ours(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    prefixed = job("beta0")._replace(rule="mamushi_beta0", known=work.known("mamushi_beta0"))
    foreign = job("align")._replace(known=None)
    # A rule that happens to end as one of ours does, of something else.
    alike = job("read_embed", model="car")
    assert alike.known == "embed"
    found = made([prefixed, foreign, alike], paper, tmp_path)
    assert found["rules"]["mamushi_beta0"]["sources"] == {"FLOP on h100": 1}
    for rule in ("align", "read_embed"):
        assert found["rules"][rule]["sources"] == {"assumed: a minute": 1}


def test_without_a_gpu_there_are_no_seconds_of_one(
    paper: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph([job("embed")], {CORES: 2}, cluster=False)
    monkeypatch.setattr(forecast, "read", lambda workflow: graph)
    seen = ["0"]
    monkeypatch.setattr("mamushi.running.leases.visible", lambda: seen)
    assert " GPU, " in forecast.begin(None, paper)
    seen.clear()
    said = forecast.begin(None, paper)
    assert "GPU" not in said and " CPU, " in said
    (alone,) = forecast.as_run_here(graph, paper).jobs
    assert forecast.Forecaster(work.Costs(paper, Volumes(paper)), rates.rate()).of(
        alone
    ).source == ("FLOP on a CPU core")
    # Nor where none is to be used; a cluster has its own.
    seen.append("0")
    without = {**paper, "execution": {**paper["execution"], "device": "cpu"}}
    assert "GPU" not in forecast.begin(None, without)
    assert forecast.as_run_here(graph._replace(cluster=True), without).jobs == graph.jobs
    forecast._running.clear()


def test_the_wall_time_names_what_binds_it(paper: dict[str, Any], tmp_path: Path) -> None:
    jobs = [job("beta0", seed=str(seed)) for seed in range(8)]
    one = made(jobs[:1], paper, tmp_path, cluster=True)["wall_seconds"]
    for limits, bound, times in (
        ({}, [forecast.CHAIN, None], 1),
        ({CORES: 4}, [CORES, 4], 2),
        ({QUEUE: 4, "gpu": 2, CORES: 64}, ["gpu", 2], 4),
        ({QUEUE: 1, "gpu": 2}, [QUEUE, 1], 8),
        # A job that asks for more than there is takes all there is.
        ({"licence": 1}, ["licence", 1], 8),
    ):
        found = made(jobs, paper, tmp_path, cluster=True, **limits)
        assert found["bound"] == bound
        assert found["wall_seconds"] == pytest.approx(one * times, rel=0.1)
    chain = made([job("contaminate"), job("embed", 0)], paper, tmp_path, **{CORES: 9})
    assert chain["wall_seconds"] == chain["critical_seconds"] > chain["cpu_seconds"] * 0.99
    with pytest.raises(UserError, match="GPU"):
        made(jobs, paper, tmp_path, gpu=0)


def test_volumes_come_from_what_has_been_made(demo: dict[str, Any], tmp_path: Path) -> None:
    volumes = Volumes(demo, tmp_path)
    assert volumes.texts("synthetic", INFERENCE, [FORGET]) == 400
    assert volumes.tokens("synthetic", 48) == pytest.approx(18 * 1.2)
    card = tmp_path / paths.DATA_CARD.format(dataset="synthetic")
    card.parent.mkdir(parents=True)
    sections = {INFERENCE: {"forget": 7, "retain": 9}, CONTAMINATION: {"forget": 1, "retain": 1}}
    card.write_text(json.dumps({"counts": {"sections": sections}}), encoding="utf-8")
    assert Volumes(demo, tmp_path).texts("synthetic", INFERENCE) == 16


def test_the_plan_says_for_every_rule_what_it_is_from(
    paper: dict[str, Any], tmp_path: Path
) -> None:
    remove = job("remove", 0, gpus=0, beta="0.10", selector="random")
    found = made([job("beta0"), remove, job("refine", gpus=0)], paper, tmp_path, gpu=4)
    said = plan.text(found)
    lines = {line.split()[0]: line for line in said.splitlines() if line}
    assert lines["beta0"].endswith("FLOP on h100")
    assert lines["remove"].endswith("assumed")
    for part in ("Wall time", "with keep_checkpoints", "8.03 billion", "without padding", "More "):
        assert part in said
    assert plan.text(made([], paper, tmp_path)) == "Nothing to be done."
    json.dumps(found, allow_nan=False)
