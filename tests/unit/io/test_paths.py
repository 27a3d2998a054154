"""Paths of artifacts: budgets keep apart, patterns hold exactly the wildcards that they name."""

import string

import pytest

from mamushi.io import paths


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (0.1, "0.10"),
        (0.35, "0.35"),
        ("0.5", "0.50"),
        (0.1 + 0.2, "0.30"),
        (0.125, "0.125"),
        ("0.004200", "0.0042"),
        (1 - 1e-6, "0.999999"),
    ],
)
def test_budgets_have_two_decimals_and_more_where_they_are_needed(
    budget: float | str, text: str
) -> None:
    assert paths.beta(budget) == text


def test_every_pattern_names_known_wildcards_under_results() -> None:
    known = {"dataset", "model", "seed", "arm", "selector", "beta", "table", "figure", "study"}
    known |= {"unlearner", "list", "place"}
    patterns = {k: v for k, v in vars(paths).items() if k.isupper() and isinstance(v, str)}
    assert {"EXAMPLES", "SCORES", "REMOVAL", "PERPLEXITY", "TABLE", "FIGURE"} <= set(patterns)
    for name, pattern in patterns.items():
        assert pattern.startswith("results/"), name
        assert {field for _, field, _, _ in string.Formatter().parse(pattern) if field} <= known
