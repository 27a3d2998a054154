"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

import pytest

from tests.support.captions import FOLDER, INCLUDES, REPORT, rendered

CAPTIONS = sorted(path.name for path in REPORT.glob("*.rst"))


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions_render_without_a_warning(name: str) -> None:
    html = rendered(name)
    assert "{{" not in html
    assert "{%" not in html
    assert str(FOLDER) not in html
    assert ("can be told from" in html) == (name in INCLUDES)
