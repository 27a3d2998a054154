"""Budgets in the names of files keep apart."""

import pytest

from mamushi.io import paths


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ("0.5", "0.50"),
        (0.1 + 0.2, "0.30"),
        ("0.004200", "0.0042"),
        (1 - 1e-6, "0.999999"),
    ],
)
def test_budgets_have_two_decimals_and_more_where_they_are_needed(
    budget: float | str, text: str
) -> None:
    assert paths.beta(budget) == text
