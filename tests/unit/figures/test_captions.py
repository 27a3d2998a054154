"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

import re

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
