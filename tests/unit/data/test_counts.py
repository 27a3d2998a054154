"""What the settings take of a dataset's texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mamushi.config.complete import complete
from mamushi.config.reading import ConfigError
from mamushi.data.counts import needs, require_texts
from mamushi.errors import UserError
from mamushi.selection.folds import stratified_folds

PLENTY = 1000


def config(**changes: Any) -> dict[str, Any]:
    made = {"kind": "synthetic"}
    return complete(
        {
            "grid": {"datasets": ["a"], "models": ["tiny"], "selectors": ["random"]},
            "datasets": {"a": made, "b": made},
            "models": {"tiny": {"family": "llama", "pretraining": {"datasets": ["b"]}}},
            "unlearning": {"datasets": ["b"], "budgets": [0.5]},
            "probe": {"datasets": ["b"], "selectors": ["random"], "budget": 0.5},
            **changes,
        }
    )


def told(given: dict[str, Any], forget: int, retain: int, dataset: str = "a") -> list[str]:
    try:
        require_texts(dataset, needs(given, dataset), {"forget": forget, "retain": retain})
    except ConfigError as error:
        return [line.partition(":")[0] for line in error.lines]
    return []


def test_the_line_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        require_texts("a", needs(config(), "a"), {"forget": 3, "retain": PLENTY})
    assert caught.value.lines == [
        "selectors.mamushi.folds: 5 takes at least 5 forget texts, and the inference section of "
        "the dataset 'a' has 3; lower it, or give it more texts",
        "grid.budgets: 0.1 takes at least 10 forget texts, and the inference section of the "
        "dataset 'a' has 3; raise it, or give it more texts",
    ]


@pytest.mark.parametrize("folds", [2, 3, 5])
@pytest.mark.parametrize("n", range(2, 7))
@pytest.mark.parametrize("domain", ["forget", "retain"])
def test_it_is_what_the_folds_ask_for(folds: int, n: int, domain: str) -> None:
    given = config(selectors={"mamushi": {"folds": folds}}, grid=GRID | {"budgets": [0.9]})
    counts = {"forget": PLENTY, "retain": PLENTY, domain: n}
    try:
        stratified_folds(np.repeat([True, False], [*counts.values()]), folds, 0)
        works = True
    except UserError:
        works = False
    assert (told(given, counts["forget"], counts["retain"]) == []) is works


GRID = {"datasets": ["a"], "models": ["tiny"], "selectors": ["random"]}


def test_each_comparison_counts_where_it_is_made() -> None:
    given = config(
        studies={"more": {"datasets": ["b"], "selectors": ["mirror"], "budgets": [0.2]}},
        selectors={
            "mirror": {"kind": "anti_mamushi", "of": "wide"},
            "wide": {"kind": "mamushi_lr", "folds": 9},
        },
    )
    both = "selectors.mamushi.folds"
    assert told(given, 4, PLENTY) == [both, "grid.budgets"]
    assert told(given, 4, PLENTY, "b") == ["selectors.wide.folds", both, "studies.more.budgets"]
    assert told(given, PLENTY, 8, "b") == ["selectors.wide.folds"]
    # Nobody has asked for unlearning, though the configuration always says how it would be.
    assert needs(config(), "b") == []
