"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

from typing import Any

import pytest

from mamushi.configuration.settings import (
    EVIDENCE_TABLES,
    LEFT_TABLES,
    PROBE_TABLES,
    TABLES,
    UNLEARNING_TABLES,
)
from mamushi.registry import plugins
from tests.support.captions import CONFIG, FOLDER, INCLUDES, REPORT, rendered

CAPTIONS = sorted(path.name for path in REPORT.glob("*.rst"))


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions_render_without_a_warning(name: str) -> None:
    html = rendered(name, CONFIG)
    assert "{{" not in html
    assert "{%" not in html
    assert str(FOLDER) not in html
    assert ("can be told from" in html) == (name in INCLUDES)


CHANGES: dict[str, dict[str, Any]] = {
    "one seed": {"grid": CONFIG["grid"] | {"seeds": [4], "selectors": ["mamushi"]}},
    "logarithmic": {"figures": CONFIG["figures"] | {"log_scale": True}},
    "no studies": {"studies": {}},
}


@pytest.mark.parametrize(
    ("name", "change"),
    # The caption of a study needs the study.
    [(n, c) for n in CAPTIONS for c in CHANGES if (n, c) != ("study.rst", "no studies")],
)
def test_captions_render_with_other_settings(name: str, change: str) -> None:
    assert rendered(name, CONFIG | CHANGES[change])


@pytest.mark.parametrize(
    "name", ["workflow.rst", "sad.rst", "study.rst", "sad_table.rst", "sad_summary.rst"]
)
def test_captions_state_the_budgets(name: str) -> None:
    assert "0.1, 0.5" in rendered(name, CONFIG)


@pytest.mark.parametrize("name", ["frontier.rst", "frontier_table.rst", "advice.rst"])
def test_captions_state_the_budgets_of_the_frontier(name: str) -> None:
    assert CONFIG["grid"]["budgets"] == [0.5, 0.1]
    changed = {**CONFIG, "evidence": {**CONFIG["evidence"], "budgets": [0.33, 0.1]}}
    assert "udgets 0.1, 0.33, 0.5" in " ".join(rendered(name, changed).split())


def test_every_figure_and_table_has_a_caption() -> None:
    # A figure and a table of the same name need captions of their own.
    tables = {*TABLES, *UNLEARNING_TABLES, *PROBE_TABLES, *EVIDENCE_TABLES, *LEFT_TABLES}
    tables.add("qualitative_ranking")
    figures = {*plugins("figure")}
    apart = {f"{name}_table" if name in figures else name for name in tables}
    # Named like a section of the configuration, or like several figures together.
    apart = apart - {"unlearning"} | {"unlearning_table"}
    apart = apart - {"geometry"} | {"geometry_table"}
    assert {f"{name}.rst" for name in figures | apart} <= set(CAPTIONS)


def test_the_front_page_counts_the_retrainings_and_lists_the_models() -> None:
    html = rendered("workflow.rst", CONFIG)
    # 3 selectors, 2 budgets, 2 datasets, 3 models, 3 seeds
    assert "108 retrained models" in html
    assert "llama architecture" in html
    assert CONFIG["models"]["gemma-2-2b"]["revision"][:8] in html
    assert "already contaminated" in html
    assert "3.5" in html


def test_captions_follow_the_settings() -> None:
    assert "one standard error" in rendered("sad.rst", CONFIG)
    assert "no error to show" in rendered("sad.rst", CONFIG | CHANGES["one seed"])
    assert "logarithmic" in rendered("sad.rst", CONFIG | CHANGES["logarithmic"])
    assert "logarithmic" not in rendered("sad.rst", CONFIG)
    assert "turned round" in rendered("study.rst", CONFIG)
