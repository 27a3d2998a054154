"""The paper's statements hold where the truth is known, and the corrections are needed."""

import math
from itertools import combinations

import numpy as np
import pytest

from mamushi.evidence.frontier import psi
from mamushi_extras.theory.statements import (
    Population,
    draw_few,
    theory_rows,
    transfer,
    window_bound,
)
from tests.support import divergences
from tests.unit.evidence.test_frontier import WORLDS, drawn

STATEMENTS = ["decomposition", "optimal_removal", "optimal_preservation", "bce_minimum"]
STATEMENTS += ["bce_regret", "l1_from_bce"]
AT_A_BUDGET = ["mass", "transfer_removal", "transfer_preservation", "bce_removal"]
AT_A_BUDGET += ["bce_preservation"]


def texts(
    n: int = 60, noise: float = 0.7, pi1: float = 0.3, seed: int = 0
) -> tuple[Population, np.random.Generator]:
    rng = np.random.default_rng(seed)
    ratio = rng.normal(0.5, 1.2, n)
    return Population(ratio, ratio + noise * rng.normal(size=n), pi1), rng


def test_texts_are_two_distributions_and_their_divergences_those_of_the_definition() -> None:
    population, rng = texts()
    assert population.p2.sum() == pytest.approx(1.0, abs=1e-14)
    assert np.abs(population.estimate).max() <= population.bound
    removed = rng.random((5, 60)) < 0.4
    to_p1, to_p2 = population.divergences(removed)
    for row, first, second in zip(removed, to_p1, to_p2, strict=True):
        kept = 1.0 - row
        assert first == pytest.approx(divergences.removal(population.ratio, kept, 0.3), abs=1e-12)
        mixture = np.log(0.3 * kept + 0.7 * np.exp(-population.ratio)) + population.ratio
        weighed = np.log1p(-0.3 * row.mean()) - population.p2 @ mixture
        assert second == pytest.approx(weighed, abs=1e-12)


@pytest.mark.parametrize(("place", "name"), WORLDS)
@pytest.mark.parametrize("estimate", ["noisy", "reverse", "constant", "exact"])
def test_every_statement_holds_in_every_world(place: str, name: str, estimate: str) -> None:
    ratio, forget = drawn(place, name)
    rng = np.random.default_rng(1)
    guesses = {
        "noisy": 0.6 * ratio + 0.8 * rng.normal(size=len(ratio)),
        "reverse": -ratio,
        "constant": np.zeros(len(ratio)),
        "exact": ratio,
    }
    population = Population(ratio[forget], guesses[estimate][forget], float(forget.mean()))
    rows = theory_rows(population, [0.0, 0.25, 0.5, 1.0])
    assert [row["statement"] for row in rows] == [*STATEMENTS, *AT_A_BUDGET, *AT_A_BUDGET]
    assert all(row["holds"] for row in rows), [row for row in rows if not row["holds"]]
    found = {row["statement"]: row for row in rows if row.get("beta") == 0.25}
    lost = found["transfer_removal"]["measured"]
    assert (lost > 1e-9) == (estimate != "exact")
    for row in found.values():
        if row.get("delta") is not None:
            total = row["delta"] + row["tau_error"]
            told = row["error"] / row["delta"] + 2 * row["margin"] * total
            mass = found["mass" if row["statement"].startswith("transfer") else row["statement"]]
            assert row["statement"] not in ("mass",) or told == pytest.approx(mass["bound"])


def test_brute_force_finds_a_rule_that_is_not_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all sets, one at a time; and what it says of the rule that removes the lowest."""
    population, _ = texts()
    few = draw_few(population)
    assert len(few.ratio) == 12 and few.p2.sum() == pytest.approx(1.0)
    for k in (1, 5, 11):
        best = few.divergences(few.top(few.ratio, k))
        for places in combinations(range(12), k):
            removed = np.isin(np.arange(12), places)
            to_p1, to_p2 = few.divergences(removed)
            assert to_p1 <= best[0] + 1e-12
            assert to_p2 >= best[1] - 1e-12
    lowest = Population.top
    monkeypatch.setattr(Population, "top", lambda self, score, k: lowest(self, -score, k))
    found = {row["statement"]: row for row in theory_rows(population, [])}
    assert found["decomposition"]["holds"]
    for name in ("optimal_removal", "optimal_preservation"):
        assert not found[name]["holds"]
        assert found[name]["measured"] > 2000


def test_the_window_is_the_best_there_is() -> None:
    rng = np.random.default_rng(2)
    distances = np.abs(rng.normal(size=200))
    for error, tau_error in ((0.05, 0.1), (0.02, 0.0), (0.3, 0.4)):
        deltas = np.linspace(1e-3, 6, 60_000)
        inside = (distances[:, None] < deltas[None, ::20] + tau_error).mean(axis=0)
        grid = (error / deltas[::20] + inside).min()
        least, delta = window_bound(distances, error, tau_error)
        assert least <= grid + 1e-12
        assert least == pytest.approx(min(grid, 1.0), abs=0.01)
        assert delta is None or (distances < delta + tau_error).mean() + error / delta == least
    assert window_bound(distances, 50.0, 0.0) == (1.0, None)
    assert window_bound(distances, 0.01, 9.0) == (1.0, None)


def test_the_simplified_corollary_needs_the_factor_of_the_priors() -> None:
    """As printed, epshat <= eps* + 2 sqrt(2 M a), which fails where pi1/pi2 is large."""
    n, pi1 = 2000, 0.999
    ratio = np.linspace(-4, 4, n)
    estimate = ratio.copy()
    estimate[:200], estimate[-200:] = ratio[-200:], ratio[:200]
    population = Population(ratio, estimate, pi1)
    best, chosen = population.top(population.ratio, 1800), population.top(estimate, 1800)
    lost = population.divergences(chosen)[1] - population.divergences(best)[1]
    # The threshold is the same, and l* has the density 1/8 wherever it has one.
    assert estimate[chosen].min() == pytest.approx(ratio[best].min())
    printed = 2 * math.sqrt(2 / 8 * population.error)
    assert population.error <= 2 / 8 * 3.0**2  # a <= 2 M delta0^2, delta0 = 3
    assert lost > 1.5 * printed
    assert lost < transfer(printed, population.bound, pi1)[1]
    assert psi(np.array([-30.0]), pi1)[0] == pytest.approx(pi1 / (1 - pi1), rel=1e-6)
