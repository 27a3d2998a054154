"""How many seeds each measure needs, on models whose differences are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.evaluation.effects import Budget
from mamushi.evaluation.paired import seeds_needed


@pytest.fixture
def efficiency(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import efficiency

    return efficiency


def test_noise_of_both_domains_costs_seeds_where_it_is_not_taken_out(efficiency: Any) -> None:
    rng = np.random.default_rng(0)
    tokens, forget = rng.integers(5, 30, 80).astype(float), np.arange(80) < 40
    level = {"random": [0.2, 0.3], "ours": [0.35], "best": [0.37], "more": [0.3]}

    def models(shares: list[float]) -> np.ndarray:
        # A training moves all texts alike, by more than `best` is above `ours`.
        noise = 0.05 * rng.normal(size=(len(shares), 8, 1)) + 0.002 * rng.normal(
            size=(len(shares), 8, 80)
        )
        return np.asarray(3 + np.array(shares)[:, None, None] * forget + noise) * tokens

    ends = (models([0.0])[0], models([0.5])[0])
    budget = Budget({name: models(each) for name, each in level.items()}, *ends, tokens, forget)
    found = efficiency.measures(budget, "best", "ours")
    assert set(found) >= {"sad", "log_sad", "forget", "forget_less_retain", "recovered"}
    apart = (budget.nll("best") - budget.nll("ours"))[:, forget].sum(axis=1)
    weighed = apart / tokens[forget].sum()
    assert found["forget"] == pytest.approx((weighed.mean(), weighed.std(ddof=1), 7))
    assert found["forget_less_retain"][0] == pytest.approx(0.02, abs=0.001)
    assert found["forget_less_retain"][1] < found["forget"][1] / 10
    needed = {name: seeds_needed(each[0], each[1], 1) for name, each in found.items()}
    assert needed["forget_less_retain"] <= 3
    # SAD of both lists of chance is the mean of theirs.
    ppl = [np.exp(budget.lists["random"][..., own].sum(-1) / tokens[own].sum())
           for own in (forget, ~forget)]  # fmt: skip
    gold = [np.exp(ends[1][:, own].sum(-1) / tokens[own].sum()) for own in (forget, ~forget)]
    other = [np.exp(budget.nll("ours")[:, own].sum(-1) / tokens[own].sum())
             for own in (forget, ~forget)]  # fmt: skip
    chance = (abs(ppl[0] - gold[0]) + abs(ppl[1] - gold[1])).mean(axis=0)
    ours = abs(other[0] - gold[0]) + abs(other[1] - gold[1])
    found = efficiency.measures(budget, "ours", "random")
    assert found["sad"][0] == pytest.approx(float((ours - chance).mean()))
    assert efficiency.said((0.2, 0.1, 7.0)) == "+0.2 sd 0.1 seeds 5 (4 to 11)"
    assert efficiency.said((0.2, 0.1, 2.0)).endswith("(unknown)")
