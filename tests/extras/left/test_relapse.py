"""The table `relapse`: what a little training brings back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table, write_table
from mamushi_extras.left.schemas import RELAPSE, RELEARNED_TEXTS, RELEARNING_CURVE
from tests.support.grid_files import write_perplexity
from tests.support.score_files import write_examples
from tests.support.stage_files import command

GRID: dict[str, Any] = {
    "datasets": ["alpha"],
    "models": ["small", "ready"],
    "seeds": [0, 1, 2],
    "selectors": ["random", "mamushi"],
    "unlearners": ["neggrad_plus"],
    "budgets": [0.2],
}
STARTS = {"small": "beta0", "ready": "contaminated"}
SETTINGS: dict[str, Any] = {"grid": GRID, "starts": STARTS}


def write_curve(path: Path, forget: list[float], steps: list[int]) -> None:
    columns = {
        "step": steps,
        "examples": [4] * len(steps),
        "ppl_forget": forget,
        "ppl_retain": [10.0] * len(steps),
    }
    write_table(path, RELEARNING_CURVE, columns)


N, TOKENS, OF_RETAIN = 60, 10, 0.1
IDS = [f"{domain}{n:02d}" for domain in "fr" for n in range(N)]
KEPT = {"random": 0.3, "mamushi": 1.2}
"""Share of the gap that is left after relearning: of 0.5 nats, of half of them after two steps."""


def write_texts(root: Path, run: dict[str, Any], arm: str, share: float) -> None:
    """What a model makes of held-out texts after one step and, nearer to the start, two. Gold is
    worse on retain texts, too."""
    rng = np.random.default_rng([run["seed"], *arm.encode()])
    ids, forget = IDS, np.arange(2 * N) < N
    gap = np.where(forget, 0.5 * share, OF_RETAIN * (arm == "gold"))
    columns: dict[str, list[Any]] = {name: [] for name in ("step", "id", "tokens", "nll")}
    for step in (1, 2):
        nll = 3 - 0.1 * step + gap / step + 0.005 * rng.normal(size=2 * N)
        columns["step"] += [step] * 2 * N
        columns["id"] += ids
        columns["tokens"] += [TOKENS] * 2 * N
        columns["nll"] += (TOKENS * nll).tolist()
    path = paths.under(root, paths.RELEARNED, **run, arm=arm)
    write_table(path, RELEARNED_TEXTS, columns)


def write_held_out(root: Path, run: dict[str, Any]) -> None:
    """The texts in another order than those above, and one with nothing to predict."""
    ids = ["none", *reversed(IDS)]
    tokens = [0] + [TOKENS] * 2 * N
    examples, n = paths.under(root, paths.EXAMPLES, dataset="alpha"), len(ids)
    domain = ["forget" if name < "r" else "retain" for name in ids]
    section = ["evaluation"] * n
    write_examples(examples, ids, domain, text=["w w"] * n, section=section)
    columns = {"id": ids, "tokens": tokens, "nll": [1.0] * len(ids), "deep": [None] * len(ids)}
    write_table(paths.under(root, paths.NLL, **run, arm="gold"), schemas.NLL, columns)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """All that the stage reads: at the start 20, after unlearning 60 (random) or 20 (mamushi)."""
    root = tmp_path / "results"
    for run in cells(GRID):
        start = SETTINGS["starts"][run["model"]]
        at = paths.under(root, paths.PERPLEXITY, **run, arm=start)
        write_perplexity(at, 20.0, 10.0)
        write_held_out(root, run)
        write_texts(root, run, start, 0.0)
        write_texts(root, run, "gold", 1.0)
        steps = [0, 2, 1]
        gold = paths.under(root, paths.RELEARNING, **run, arm="gold")
        write_curve(gold, [80.0 + run["seed"], 65.0, 74.0], steps)
        for selector, values in (("random", [60.0, 10.0, 50.0]), ("mamushi", [20.0, 15.0, 18.0])):
            for arm in (
                arms.unlearned_arm("neggrad_plus", selector, 0.2),
                arms.retrained_arm(selector, 0.2),
            ):
                write_curve(paths.under(root, paths.RELEARNING, **run, arm=arm), values, steps)
                write_texts(root, run, arm, KEPT[selector])
    return root


def collected(root: Path, settings: dict[str, Any] = SETTINGS) -> int:
    how = {"name": "relapse", "settings": settings}
    return main(command("publish", how, root=root, out_folder=root / "tables"))


@pytest.mark.parametrize("seeds", [[0, 1], [0]])
def test_what_comes_back_is_told_against_gold(results: Path, seeds: list[int]) -> None:
    """Retrained models as well, of which half comes back to the start, where gold learns less."""
    for run in cells(GRID):
        arm = arms.retrained_arm("random", 0.2)
        write_curve(paths.under(results, paths.RELEARNING, **run, arm=arm), [80, 40, 56], [0, 2, 1])
    grid = {**GRID, "models": ["small"], "selectors": ["random"], "seeds": seeds}
    assert collected(results, {**SETTINGS, "grid": grid}) == 0
    rows = read_table(results / "tables/relapse.parquet", RELAPSE).to_pylist()
    places = [(row["source"], row["step"]) for row in rows]
    assert places == [(name, n) for name in ("retraining", "neggrad_plus") for n in (1, 2)]
    last = rows[1]
    assert (last["raised"], last["regained"]) == pytest.approx((np.log(80 / 20), np.log(80 / 40)))
    by_gold = np.array([np.log((80 + seed) / 65) for seed in seeds])
    assert last["gold_regained"] == pytest.approx(by_gold.mean())
    assert last["excess"] == pytest.approx(last["regained"] - by_gold.mean())
    assert last["retain_lost"] == 0.0
    if len(seeds) == 1:
        assert last["excess_low"] is None and last["why"].startswith("one seed")
        assert last["relearned_low"] is last["relearned_beside_gold"] is None
        assert last["relearned_withheld"] == last["why"]
    else:
        half = 12.7062 * by_gold.std(ddof=1) / np.sqrt(2)
        assert last["excess_high"] - last["excess"] == pytest.approx(half, rel=1e-4)


def test_what_is_left_after_relearning_is_a_share_of_golds(results: Path) -> None:
    assert collected(results) == 0
    rows = read_table(results / "tables/relapse.parquet", RELAPSE).to_pylist()
    assert {(row["model"], row["source"]) for row in rows} >= {("ready", "neggrad_plus")}
    for row in rows:
        share = KEPT[row["selector"]]
        assert row["relearned"] == pytest.approx(share, abs=0.04)
        # Of what gold has on forget texts, 0.5, it has a fifth on retain texts as well.
        assert row["relearned_net"] == pytest.approx(share / 0.8, abs=0.06)
        assert row["relearned_net_low"] < share / 0.8 < row["relearned_net_high"]
        # One of so many intervals at 95% may miss it by a little.
        assert row["relearned_low"] - 0.02 < share < row["relearned_high"] + 0.02
        assert row["relearned_high"] - row["relearned_low"] < 0.4
        word = {"random": "short of gold", "mamushi": "overshoots"}[row["selector"]]
        assert (row["relearned_beside_gold"], row["relearned_withheld"]) == (word, None)
