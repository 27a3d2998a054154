"""The first crossing of a curve and the budgets that are measured around it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.evaluation.crossing import finer_budgets, first_crossing, recovery

COARSE = [0.0, 0.25, 0.5, 0.75, 1.0]

MONOTONE = [0.0, 0.2, 0.4, 0.8, 1.0]
DIPS = [0.0, 0.6, 0.4, 0.7, 0.2]

CURVES = [
    # height, crossing, what a step of 0.05 adds
    (MONOTONE, 0.5 + 0.25 * 0.1 / 0.4, [0.55, 0.6, 0.65, 0.7]),
    (DIPS, 0.25 * 0.5 / 0.6, [0.05, 0.1, 0.15, 0.2]),
    ([0.0, 0.1, 0.3, 0.2, 0.4], None, []),
    ([0.0, 1.0, 1.2, 1.3, 1.4], 0.125, [0.05, 0.1, 0.15, 0.2]),
    ([0.0, 0.1, 0.1, 0.4, 0.6], 0.875, [0.8, 0.85, 0.9, 0.95]),
    ([0.0, 0.2, 0.5, 0.8, 1.0], 0.5, [0.3, 0.35, 0.4, 0.45]),
    ([0.5, 0.6, 0.7, 0.8, 1.0], 0.0, []),
]


def test_recovery_is_the_share_of_the_way_and_unknown_without_a_gap() -> None:
    np.testing.assert_allclose(recovery([20, 30, 40, 50, 10], 20, 40), [0, 0.5, 1, 1.5, -0.5])
    assert np.isnan(recovery([20.0, 30.0], 20, 20)).all()
    assert np.isnan(recovery(30.0, 20.0, 19.0))
    np.testing.assert_allclose(recovery([[30.0], [30.0]], [[20.0], [0.0]], 40), [[0.5], [0.75]])


@pytest.mark.parametrize(("height", "crossing", "added"), CURVES)
def test_crossings_and_refinement_of_given_curves(
    height: list[float], crossing: float | None, added: list[float]
) -> None:
    found = first_crossing(COARSE, height, 0.5)
    if crossing is None:
        assert found is None
    else:
        assert found == pytest.approx(crossing, abs=1e-12)
    # Equal, not close: these become file names.
    assert finer_budgets(COARSE, height, 0.5, 0.05) == added
    assert finer_budgets(COARSE, MONOTONE, 0.5, 0.07) == [0.56, 0.63, 0.7]


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[list[float], list[float], float, dict[int, float]]:
    """Measured budgets, a step, and the true heights at every hundredth."""
    inner = draw(st.sets(st.integers(1, 99), max_size=9))
    hundredths = [0, *sorted(inner), 100]
    heights = draw(st.lists(st.floats(-0.5, 1.5), min_size=101, max_size=101))
    truth = dict(enumerate(heights))
    fine = draw(st.integers(1, 60)) / 100
    return [k / 100 for k in hundredths], [truth[k] for k in hundredths], fine, truth


@given(sweeps())
def test_the_refined_curve_crosses_in_the_same_bracket(
    sweep: tuple[list[float], list[float], float, dict[int, float]],
) -> None:
    beta, height, fine, truth = sweep
    before = first_crossing(beta, height, 0.5)
    added = finer_budgets(beta, height, 0.5, fine)
    if before is None or before == 0:
        assert added == []
        return
    assert not set(added) & set(beta)
    all_of_them = sorted({*beta, *added})
    after = first_crossing(all_of_them, [truth[round(b * 100)] for b in all_of_them], 0.5)
    low = max(b for b, h in zip(beta, height, strict=True) if b < before and h < 0.5)
    high = min(b for b in beta if b >= before)
    assert after is not None
    assert low <= after <= high
    assert all(low < b < high for b in added)
    assert [round(b * 100) % round(fine * 100) for b in added] == [0] * len(added)
    # The step leaves no wider gap than itself in the bracket.
    inside = [low, *added, high]
    assert np.diff(inside).max() <= fine + 1e-9
