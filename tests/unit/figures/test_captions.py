"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mamushi.io import schemas
from mamushi.registry import plugins
from mamushi.stages._settings import (
    EVIDENCE_TABLES,
    LEFT_TABLES,
    PROBE_TABLES,
    TABLES,
    UNLEARNING_TABLES,
)
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
    "no studies": {"studies": {}},
}


@pytest.mark.parametrize(
    ("name", "change"),
    # The caption of a study needs the study.
    [(n, c) for n in CAPTIONS for c in CHANGES if (n, c) != ("study.rst", "no studies")],
)
def test_captions_render_with_other_settings(name: str, change: str) -> None:
    assert rendered(name, CONFIG | CHANGES[change])


def test_captions_state_the_budgets() -> None:
    assert CONFIG["grid"]["budgets"] == [0.5, 0.1]
    for name in ("workflow", "sad", "study", "sad_table", "sad_summary"):
        assert "0.1, 0.5" in rendered(f"{name}.rst", CONFIG)
    changed = {**CONFIG, "evidence": {**CONFIG["evidence"], "budgets": [0.33, 0.1]}}
    for name in ("frontier", "frontier_table", "advice"):
        assert "udgets 0.1, 0.33, 0.5" in " ".join(rendered(f"{name}.rst", changed).split())


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


def test_captions_follow_the_settings() -> None:
    front = rendered("workflow.rst", CONFIG)
    # 3 selectors, 2 budgets, 2 datasets, 3 models, 3 seeds
    revision = CONFIG["models"]["gemma-2-2b"]["revision"][:8]
    assert front.index("<img") < front.index("<p>")
    assert "results['results/sad.png']" in front
    for words in ("108 retrained models", "llama architecture", revision, "contaminated", "3.5"):
        assert words in front
    assert "retrained models" not in rendered(
        "workflow.rst", CONFIG, ["advice.csv", "frontier.png"]
    )
    assert "one standard error" in rendered("sad.rst", CONFIG)
    assert "no error to show" in rendered("sad.rst", CONFIG | CHANGES["one seed"])
    assert "turned round" in rendered("study.rst", CONFIG)


VALUES = {
    "calibration": {"slope", "intercept", "psi_over_phi"},
    "sad_summary": {"area"},
    "subgroups": {"words"},
}
"""What lists of captions name beside columns: checks, quantities, settings."""


@pytest.mark.parametrize("name", [n for n in CAPTIONS if hasattr(schemas, n[:-4].upper())])
def test_a_caption_lists_columns_that_its_table_has(name: str) -> None:
    table = name.removesuffix(".rst")
    items = re.findall(r"^\* ([^:\n]*)", (REPORT / name).read_text(encoding="utf-8"), re.M)
    listed = {each for item in items for each in re.findall(r"``([a-z_0-9]+)``", item)}
    columns = {*getattr(schemas, table.upper()).schema.names} | VALUES.get(table, set())
    assert listed <= columns
