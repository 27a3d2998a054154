"""Recommended budgets on curves of a closed form, and the command that prints them."""

import re
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.evidence.advice import LIMIT, PREDICTED, advice
from mamushi.io import paths
from tests.support.ranked_files import frontier, write_frontiers


def one(rows: list[dict[str, Any]], target: str, value: float) -> dict[str, Any]:
    (row,) = advice(rows, [(target, value)])
    return row


@pytest.mark.parametrize(
    ("target", "value", "budget"),
    [
        ("removal", 0.25, 0.25),
        ("removal", 0.9, 0.9),
        ("preservation", 0.1, 0.75),
        ("preservation", 0.4, 0.0),
    ],
)
def test_budgets_of_straight_curves(target: str, value: float, budget: float) -> None:
    row = one(frontier("straight", 1.0), target, value)
    assert row["budget"] == pytest.approx(budget, abs=1e-12)
    assert row["budget_low"] == row["budget_high"] == pytest.approx(budget)
    assert (row["target"], row["value"], row["reason"]) == (target, value, None)


def test_the_interval_spans_seeds_and_bands_and_is_rounded_outwards() -> None:
    rows = [*frontier("s", 1.0, 0, width=0.1), *frontier("s", 2.0, 1, width=0.05)]
    row = one(rows, "removal", 0.49)
    assert row["budget"] == pytest.approx((0.49 + 0.7) / 2, abs=1e-3)
    # The bands get there at 0.39 and at the root of 0.54, which is 0.735.
    assert (row["budget_low"], row["budget_high"]) == (0.39, 0.74)
    falling = one(rows, "preservation", 0.2)
    assert (falling["budget_low"], falling["budget_high"]) == (0.25, 0.75)
    # The wide band of one seed gets to nothing below budget 0.998.
    open_end = one(rows, "preservation", 0.005)
    assert (open_end["budget_low"], open_end["budget_high"]) == (0.73, 1.0)
    assert open_end["reason"] is None


def test_a_budget_says_its_span_and_what_it_is_of() -> None:
    rows = frontier("s", 1.0, width=0.1)
    alone = one(rows, "removal", 0.5)
    assert (alone["span"], alone["limit"]) == ("40% to 60%", LIMIT)
    at = {"dataset": "d", "model": "m", "selector": "s", "seed": 0}
    at = {name: rows[0][name] for name in at}
    curve = [{**at, "beta": beta, "recovered": beta**0.5} for beta in (0.0, 0.25, 0.5, 1.0)]
    (foreseen,) = advice(rows, [("removal", 0.5)], curve)
    assert (foreseen["span"], foreseen["limit"]) == ("5% to 45%", PREDICTED)
    withheld = one([row | {"gain_low": None} for row in rows], "removal", 0.5)
    assert withheld["span"] is withheld["limit"] is None


def reason(rows: list[dict[str, Any]], target: str, value: float) -> str | None:
    row = one(rows, target, value)
    assert (row["reason"] is None) == (row["budget"] is not None)
    return row["reason"]


def test_reasons_that_leave_no_budget() -> None:
    rows = [*frontier("s", 1.0, 0, overshoot=0.5), *frontier("s", 1.0, 1)]
    assert reason(rows, "removal", 1.0) == "no budget below 1 gets there"
    rows = [row | {"gain_low": None} for row in frontier("s", 1)]
    assert reason(rows, "removal", 0.5) == "the gain of removing all is not distinguishable from 0"
    # Preservation rests on no gain.
    assert reason(rows, "preservation", 0.1) is None
    second = [row | {"withheld": "why"} for row in frontier("s", 1.0, 1)]
    for target in ("removal", "preservation"):
        assert reason([*frontier("s", 1.0), *second], target, 0.2) == "why"
    wide = reason(frontier("s", 1, width=0.31), "removal", 0.5)
    assert wide == "all from 0.19 to 0.81 is as likely"
    assert reason(frontier("s", 1, width=0.29), "removal", 0.5) is None


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    selectors = (("slow", 2.0, 0.05), ("fast", 0.5, 0.0))
    curves = [frontier(name, p, seed, w) for name, p, w in selectors for seed in (0, 1)]
    write_frontiers(tmp_path, [row for curve in curves for row in curve])

    def printed(*words: str) -> list[str]:
        assert main(["advise", "--root", str(tmp_path), *words]) == 0
        return capsys.readouterr().out.splitlines()

    lines = printed("--removal", "0.5")
    assert lines[0] == "50% of the full removal"
    # 71% of 40 texts are 28.3: a share whose list has 29.
    assert [re.split(r"  +", line)[2:] for line in lines[2:-1]] == [
        ["fast", "10 texts", "25%", "25% to 25%", "mamushi list --budget 0.25 --selector fast"],
        ["slow", "29 texts", "73%", "67% to 75%", "mamushi list --budget 0.73 --selector slow"],
    ]
    # A list that is there is named.
    cell = {"dataset": "small", "model": "tiny", "seed": 1, "selector": "fast", "beta": "0.30"}
    there = paths.under(tmp_path, paths.REMOVAL, **cell)
    there.parent.mkdir(parents=True)
    there.touch()
    assert printed("--removal", "0.5477")[2].endswith(str(there))
    lines = printed("--preservation", "0.1")
    assert "harm to the retain domain of at most 0.1 nats per text" in lines[0]
    without = [re.split(r"  +", line)[2:] for line in printed("--removal", "1")[2:]]
    assert without == [[name, "no budget below 1 gets there"] for name in ("slow", "fast")]
