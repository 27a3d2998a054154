"""Every measured number in a table of the documentation is that of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.measured import problems

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_measured_table_is_that_of_its_file(page: Path) -> None:
    assert not problems(page.read_text(encoding="utf-8"), ROOT)
