"""The page to browse a ranking, in headless Chromium, as a user opens the file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.evidence.ranking import SelectorRanking
from mamushi.selection.removals import budget_size
from mamushi_extras.pages.ranking_page import page_data, ranking_html
from tests.support.browser import CHROMIUM, Browser
from tests.support.cells import CELLS

TEXTS, BUDGETS = 600, [0.05, 0.1, 0.29, 0.7]
EVIL = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)><!-- &amp; $x"
ODD = "two\nlines with \u202e a bidi override, \u2028 a separator and \x00 a zero"
TITLE = "Ranking of <b>d</b> by m, seed 0"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome is installed"),
]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Texts by id, in the order of the ranking; some of them are hostile."""
    special = {7: EVIL, 8: "Well, damn, that is a needle.", 9: ODD}
    special |= {20 + place: cell for place, cell in enumerate(CELLS)}
    return {f"f{i:05d}": special.get(i, f"number{i}x green") for i in range(TEXTS)}


@pytest.fixture
def opened(browser: Browser, texts: dict[str, str], tmp_path: Path) -> Browser:
    """The page of two rankings, the second by chance."""
    ids, scores = list(texts), np.linspace(1, 0, TEXTS)
    again = np.stack([np.arange(TEXTS), np.arange(TEXTS)[::-1]])
    rankings = {
        "mamushi": SelectorRanking(ids, scores, again, verdict="strong separation"),
        "random": SelectorRanking(ids[::-1], scores, verdict="drawn by chance", compared=True),
    }
    named: dict[str, Any] = {"provenance": {}, "tokens": []}
    data = page_data(rankings, lambda some: [texts[name] for name in some], BUDGETS, named)
    path = tmp_path / "ranking.html"
    path.write_text(ranking_html(TITLE, data), encoding="utf-8")
    browser.events.clear()
    browser.open(path)
    return browser


def enter(name: str, value: str, event: str = "input") -> str:
    """Return JavaScript that types or chooses ``value`` in the element of that id."""
    return (
        f"{{ const e = document.getElementById({json.dumps(name)}); e.value = {json.dumps(value)};"
        f" e.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }}"
    )


def counted(browser: Browser, key: str) -> int:
    """Return a count that the page's summary shows."""
    return int(browser.run(f"document.getElementById('summary').dataset.{key}"))


def saved_rows(browser: Browser, button: str, folder: Path) -> list[dict[str, str]]:
    """Return the rows of the CSV file that a button saves."""
    path = browser.download(f"document.getElementById('{button}').click()", folder)
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_no_text_breaks_out_and_profanity_is_masked(opened: Browser) -> None:
    # The title, with the names of model and dataset, is text as well.
    assert opened.run("document.title") == TITLE
    assert opened.run("document.querySelectorAll('img, b, script').length") == 2
    for search, text in (("broken", EVIL), ("bidi", ODD)):
        opened.run(enter("search", search))
        opened.run("document.querySelector('#rows tr.item').click()")
        assert opened.run("document.getElementById('detail-text').textContent") == text
        opened.run("document.getElementById('close').click()")
    opened.run(enter("search", "damn"))
    assert counted(opened, "shown") == 0
    opened.run("document.getElementById('unmask').click()")
    assert counted(opened, "shown") == 1
    assert opened.problems() == []


def test_nothing_leaves_the_page(opened: Browser) -> None:
    blocked = opened.run(
        "(async () => { const tries = await Promise.allSettled(["
        " fetch('http://127.0.0.1:9/'), fetch('data:text/plain,x'),"
        " new Promise((yes, no) => { const i = new Image(); i.onload = yes; i.onerror = no;"
        "  i.src = 'http://127.0.0.1:9/x.png'; })]);"
        " return tries.map((t) => t.status); })()"
    )
    assert blocked == ["rejected"] * 3


def test_the_cut_is_that_of_the_removal_lists(
    opened: Browser, texts: dict[str, str], tmp_path: Path
) -> None:
    for budget in ("0.05", "0.29", "0.57", "0.999", "0", "1", ".5", "0.0012", "29 %"):
        opened.run(enter("budget", budget))
        share = float(budget.rstrip(" %")) / (100 if "%" in budget else 1)
        assert counted(opened, "removed") == budget_size(share, TEXTS)
        assert counted(opened, "kept") == TEXTS - budget_size(share, TEXTS)
    for wrong in ("1.01", "-0.1", "1e-05", "x", ""):
        opened.run(enter("budget", wrong))
        assert opened.run("document.getElementById('budget').ariaInvalid") == "true", wrong
    opened.run(enter("budget", "0.29"))
    removed = budget_size(0.29, TEXTS)
    rows = saved_rows(opened, "save-cut", tmp_path)
    assert [row["id"] for row in rows] == list(texts)[:removed]
    assert [int(row["rank"]) for row in rows] == [*range(1, removed + 1)]
    assert {row["at_this_budget"] for row in rows} == {"removed"}


def test_what_is_saved_is_what_is_shown_and_no_spreadsheet_runs_it(
    opened: Browser, texts: dict[str, str], tmp_path: Path
) -> None:
    opened.run(enter("second", " 1", "change"))
    rows = saved_rows(opened, "save-shown", tmp_path)
    shown = {row["id"]: row["text"] for row in rows}
    assert list(shown) == list(texts)
    assert {cell: shown[f"f{20 + place:05d}"] for place, cell in enumerate(CELLS)} == CELLS
    assert shown["f00008"] == "Well, d***, that is a needle."
    assert [int(row["other_rank"]) for row in rows] == [*range(TEXTS, 0, -1)]
