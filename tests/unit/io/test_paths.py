"""Budgets in the names of files keep apart."""

from mamushi.io import paths


def test_budgets_have_two_decimals_and_more_where_they_are_needed() -> None:
    texts = [paths.beta(budget) for budget in ("0.5", 0.1 + 0.2, "0.004200", 1 - 1e-6)]
    assert texts == ["0.50", "0.30", "0.0042", "0.999999"]
