"""Every page that a user opens, in headless Chromium: no error on the console, nothing beyond the
window's edge, every control within reach of the keyboard."""

from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from mamushi.evidence.ranking import SelectorRanking
from mamushi_extras.pages.ranking_page import page_data, ranking_html
from mamushi_extras.pages.start import write_start_page
from tests.support.browser import CHROMIUM, WIDTHS, Browser
from tests.support.captions import CONFIG, rendered
from tests.support.ranked_files import frontier, write_effects, write_frontiers, write_ranked
from tests.support.start_files import CELL, PIXEL, write_results

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome")

PAGES = ["start", "ranking", "front"]
FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Front</title><style>
body {{ margin: 0; font: 14px sans-serif; }} img {{ max-width: 100%; }}
.flex {{ display: flex; }} .screen {{ height: 100vh; }} .centre {{ align-items: center; }}
nav {{ width: 20%; min-width: 15rem; }} .prose {{ max-width: 32rem; }}
</style></head><body><script>var results = {{"results/sad.png": {{data_uri: "{}"}}}};</script>
<div id="app"><div class="flex screen"><nav>Menu</nav>
<div class="flex screen centre" style="overflow: auto; flex-grow: 1"><div class="flex">
<div><div class="prose">{}</div></div><div id="rulegraph" style="height: 3000px">Graph</div>
</div></div></div></div></body></html>"""
"""The report's front page among what Snakemake puts around it."""
LONG = "a" * 300


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("results")
    write_results(root)
    write_ranked(root, selectors=("mamushi", "random"))
    rows = [*frontier("mamushi", 0.5, width=0.1), *frontier("random", 1.0)]
    write_frontiers(root, [{**row, "dataset": "texts", "model": "ours"} for row in rows])
    write_effects(root)
    for beta in range(30, 90):
        (root / CELL / "removals" / "s" / f"beta0.{beta}.parquet").touch()
    (root / "tables" / f"{LONG[:200]}.csv").touch()
    ids = [f"{LONG}{i}" for i in range(60)]
    first = SelectorRanking(ids, np.linspace(1, 0, 60), verdict=LONG)
    rankings = {"one": first, "two": SelectorRanking(ids, np.ones(60))}
    named = {
        "provenance": {LONG: LONG},
        "tokens": [],
    }
    data = page_data(rankings, lambda ids: [f"damn {LONG}"] * len(ids), [0.1, 0.5], named)
    (root / CELL / "ranking.html").write_text(ranking_html(LONG, data), encoding="utf-8")
    pixel = f"data:image/png;base64,{b64encode(PIXEL).decode()}"
    front = FRONT.format(pixel, rendered("workflow.rst", CONFIG))
    (root / "front.html").write_text(front, encoding="utf-8")
    start = write_start_page(root)
    assert start is not None
    return {
        "start": start,
        "ranking": root / CELL / "ranking.html",
        "front": root / "front.html",
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window_and_says_no_error(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.events.clear()
    browser.open(pages[name])
    for width in WIDTHS:
        assert browser.overflow(width) == []
    assert browser.problems() == []


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_every_control(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    assert browser.missed_by_tab() == []
