"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

import pytest
from mamushi.stages._settings import (
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
