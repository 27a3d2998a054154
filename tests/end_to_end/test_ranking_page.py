"""The page to browse a ranking, in headless Chromium: 8,000 texts, as a user opens the file."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.io.files import write_json
from mamushi.selection.removals import count
from tests.support.browser import CHROMIUM, Browser
from tests.support.cells import CELLS
from tests.support.judged_files import WORDS as VERDICT
from tests.support.judged_files import write_stability
from tests.support.score_files import ranks_of, write_examples, write_refits, write_scores

N, RETAIN = 8000, 10
BUDGETS = [0.05, 0.1, 0.29, 0.7]
SELECTORS = ["mamushi", "random", "ties"]
WORDS = ["the", "of", "model", "data", "page", "comment", "river", "green", "quick", "talk"]
EVIL = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)><!-- &amp; $x"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome is installed"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """8,000 forget texts with three rankings, and the page made of them by the stage."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)
    ids = [f"f{i:05d}" for i in range(N)] + [f"r{i}" for i in range(RETAIN)]
    texts = [
        f"number{i}x " + " ".join(rng.choice(WORDS, rng.integers(5, 120))) for i in range(len(ids))
    ]
    texts[7] = EVIL
    texts[8] = "Well, damn, that is a needle."
    texts[9] = " ".join(["filler"] * 600) + " hiddenword at the end"
    for place, cell in enumerate(CELLS):
        texts[20 + place] = cell
    texts[10] = "two\nlines with \u202e a bidi override, \u2028 a separator and \x00 a zero"
    domain = ["forget"] * N + ["retain"] * RETAIN
    about = ids, domain
    write_examples(folder / "examples.parquet", *about, text=texts)
    ranks, other = {}, {}
    for name in SELECTORS:
        score, again = rng.normal(0, 3, (2, len(ids)))
        if name == "ties":
            score = np.round(score)
        for found, values in ((ranks, score), (other, again)):
            found[name] = dict(zip(ids[:N], ranks_of(values[:N]).tolist(), strict=True))
        write_scores(folder / f"{name}.parquet", *about, score)
        write_refits(folder / f"{name}.again.parquet", *about, [("whole", 0, again)])
    write_stability(folder / "stable.parquet")
    out = folder / "ranking.html"
    settings = {
        **{"dataset": "<b>d</b>", "model": "m", "seed": 0, "budgets": BUDGETS},
        "compared": {"random": "drawn by chance"},
    }
    read = [f"--examples={folder}/examples.parquet"]
    scored = [str(folder / f"{name}.parquet") for name in SELECTORS]
    again_ = [str(folder / f"{name}.again.parquet") for name in SELECTORS]
    each = ["--scores", *scored, "--refits", *again_, "--selectors", *SELECTORS]
    shown = folder / "shown.json"
    tokens = [{"token": EVIL, "score": 1.234, "forget": 1200, "retain": 0}]
    parts = [["<i>it</i> ", None], ["masked", "0.10"]]
    about = {"selector": "words", "verdict": "strong", "tokens": tokens}
    write_json(shown, {**about, "texts": [{"id": "f7", "parts": parts}]})
    each += ["--stability", *[str(folder / "stable.parquet")] * len(SELECTORS)]
    each += ["--refitted", *SELECTORS, "--settings", json.dumps(settings)]
    bare = folder / "bare.html"
    assert main(["ranking", *read, *each, f"--out={out}", "--tokens", str(shown)]) == 0
    assert main(["ranking", *read, *each, f"--out={bare}"]) == 0
    by_id = dict(zip(ids, texts, strict=True))
    return {
        "page": out,
        "bare": bare,
        "ranks": ranks,
        "again": other,
        "ids": ids[:N],
        "texts": by_id,
    }


@pytest.fixture
def opened(browser: Browser, world: dict[str, Any]) -> Browser:
    browser.events.clear()
    browser.open(world["page"])
    return browser


def enter(name: str, value: str, event: str = "input") -> str:
    """JavaScript that types or chooses ``value`` in the element of that id."""
    return (
        f"{{ const e = document.getElementById({json.dumps(name)}); e.value = {json.dumps(value)};"
        f" e.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }}"
    )


def click(key: str) -> str:
    return f"document.querySelector('[data-key={key}]').click()"


def visible(browser: Browser) -> list[list[str]]:
    """The cells of the rows in the document."""
    return list(
        browser.run(
            "[...document.querySelectorAll('#rows tr.item')].map((r) => "
            "[...r.cells].map((c) => c.textContent))"
        )
    )


def count_of(browser: Browser, key: str) -> int:
    return int(browser.run(f"document.getElementById('summary').dataset.{key}"))


def detail(browser: Browser) -> str:
    """The text of the first row in full, as it opens with a click."""
    browser.run("document.querySelector('#rows tr.item').click()")
    text = browser.run("document.getElementById('detail-text').textContent")
    browser.run("document.getElementById('close').click()")
    return str(text)


COMPARE = enter("second", " 1", "change")


def test_no_text_breaks_out_and_profanity_is_masked(opened: Browser) -> None:
    # The model's and the dataset's names are text as well.
    assert opened.run("document.title") == "Ranking of <b>d</b> by m, seed 0"
    assert opened.run("document.querySelectorAll('img, b, script').length") == 2
    opened.run(enter("search", "broken"))
    assert visible(opened)[0][-1] == EVIL
    assert detail(opened) == EVIL
    opened.run(enter("search", "damn"))
    assert count_of(opened, "shown") == 0
    opened.run(enter("search", "bidi"))
    assert (
        detail(opened)
        == "two\nlines with \u202e a bidi override, \u2028 a separator and \x00 a zero"
    )


def test_nothing_leaves_the_page(opened: Browser, world: dict[str, Any]) -> None:
    opened.run(COMPARE)
    opened.run(enter("search", "green"))
    blocked = opened.run(
        "(async () => { const tries = await Promise.allSettled(["
        " fetch('http://127.0.0.1:9/'), fetch('data:text/plain,x'),"
        " new Promise((yes, no) => { const i = new Image(); i.onload = yes; i.onerror = no;"
        "  i.src = 'http://127.0.0.1:9/x.png'; })]);"
        " return tries.map((t) => t.status); })()"
    )
    assert blocked == ["rejected"] * 3
    # What the policy forbids is told, too, as refused before it starts.
    refused = {
        event["params"]["requestId"]
        for event in opened.events
        if event.get("method") == "Network.loadingFailed"
        and event["params"].get("blockedReason") == "csp"
    }
    sent = {
        event["params"]["request"]["url"]
        for event in opened.events
        if event.get("method") == "Network.requestWillBeSent"
        and event["params"]["requestId"] not in refused
    }
    assert sent == {world["page"].as_uri()}


def test_the_verdict_stands_on_it_and_nothing_on_the_console(opened: Browser) -> None:
    verdict = "document.getElementById('verdict').innerText"
    assert opened.run(verdict) == f"mamushi: {VERDICT}."
    opened.run(enter("first", "1", "change"))
    assert opened.run(verdict) == "random: a comparison, not to be acted on: drawn by chance."
    # A comparison looks like one: its texts are not marked as those to be removed.
    marked = "getComputedStyle(document.querySelector('#rows tr.removed td')).backgroundColor"
    chance = opened.run(marked)
    named = "[...document.getElementById('first').options].map((each) => each.textContent)"
    assert opened.run(named) == ["mamushi", "random (comparison)", "ties"]
    opened.run(enter("first", "0", "change"))
    assert opened.run(marked) != chance
    opened.run(COMPARE)
    assert opened.problems() == []


def saved(opened: Browser, button: str, folder: Path) -> list[dict[str, str]]:
    """The rows of the CSV file that a button saves."""
    path = opened.download(f"document.getElementById('{button}').click()", folder)
    assert path.name.startswith("Ranking_of_b_d_b_by_m_seed_0_mamushi_")
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_the_cut_is_saved_as_csv(opened: Browser, world: dict[str, Any], tmp_path: Path) -> None:
    k = count(0.29, N)
    opened.run(enter("budget", "0.29"))
    opened.run(enter("search", "needle"))
    rows = saved(opened, "save-cut", tmp_path)
    by_rank = sorted(world["ranks"]["mamushi"], key=world["ranks"]["mamushi"].__getitem__)
    assert [row["id"] for row in rows] == by_rank[:k]
    assert [int(row["rank"]) for row in rows] == [*range(1, k + 1)]
    assert {(row["selector"], row["budget"], row["at_this_budget"], row["rankings"])
            for row in rows} == {("mamushi", "0.29", "removed", "2")}  # fmt: skip
    assert {row["removed_by"] for row in rows} == {"1", "2"}
    assert all(isinstance(float(row["score"]), float) for row in rows)
    assert opened.run("document.getElementById('saved').innerText").startswith(f"{k:,} texts: ")


def test_a_search_is_saved_as_csv_that_no_spreadsheet_runs(
    opened: Browser, world: dict[str, Any], tmp_path: Path
) -> None:
    opened.run(COMPARE)
    opened.run(click("id"))
    rows = saved(opened, "save-shown", tmp_path)
    texts = {row["id"]: row["text"] for row in rows}
    assert list(texts) == sorted(world["ids"])
    assert {cell: texts[f"f{20 + place:05d}"] for place, cell in enumerate(CELLS)} == CELLS
    assert texts["f00008"] == "Well, d***, that is a needle."
    assert texts["f00010"] == world["texts"]["f00010"]
    assert all(int(row["other_rank"]) == world["ranks"]["random"][row["id"]] for row in rows)
    opened.run("document.getElementById('unmask').click()")
    opened.run(enter("search", "needle"))
    (row,) = saved(opened, "save-shown", tmp_path)
    assert row["text"] == world["texts"]["f00008"]


def test_sort_by_click_on_the_head(opened: Browser, world: dict[str, Any]) -> None:
    by_rank = sorted(world["ranks"]["mamushi"], key=world["ranks"]["mamushi"].__getitem__)
    assert [row[4] for row in visible(opened)][:10] == by_rank[:10]
    opened.run(click("rank"))
    assert [row[4] for row in visible(opened)][:10] == by_rank[::-1][:10]
    opened.run(click("score"))
    assert [row[4] for row in visible(opened)][:10] == by_rank[:10]
    opened.run(click("id"))
    assert [row[4] for row in visible(opened)][:2] == ["f00000", "f00001"]
    assert opened.run("document.querySelectorAll('[aria-sort=ascending]').length") == 1
    # Equal scores go by rank, in both directions.
    opened.run(enter("first", "2", "change"))
    opened.run(click("score"))
    shown = [int(row[0].replace(",", "")) for row in visible(opened)]
    assert shown == sorted(shown)


def test_the_cut_counts_as_the_removal_lists(opened: Browser) -> None:
    names = opened.run("[...document.querySelectorAll('#presets button')].map(b => b.textContent)")
    assert names == [str(beta) for beta in BUDGETS]
    for budget in ("0.05", "0.29", "0.57", "0.7", "0.999", "0", "1", ".5", "0.00012"):
        opened.run(enter("budget", budget))
        assert count_of(opened, "removed") == count(budget, N)
        assert count_of(opened, "kept") == N - count(budget, N)
    for place, beta in enumerate(BUDGETS):
        for action in (
            f"document.querySelectorAll('#presets button')[{place}].click()",
            enter("budget", f"{100 * beta:.4g} %"),
        ):
            opened.run(action)
            assert count_of(opened, "removed") == count(beta, N)
    for wrong in ("1.01", "-0.1", "1e-05", "x", ".", ""):
        opened.run(enter("budget", wrong))
        assert opened.run("document.getElementById('budget').ariaInvalid") == "true", wrong
        assert count_of(opened, "removed") == count(BUDGETS[-1], N)


@pytest.mark.parametrize("budget", ["0.29", "1"])
def test_compare_two_selectors(opened: Browser, world: dict[str, Any], budget: str) -> None:
    ours, other = world["ranks"]["mamushi"], world["ranks"]["random"]
    k = count(budget, N)
    first, second = ({key for key in r if r[key] <= k} for r in (ours, other))
    opened.run(enter("budget", budget))
    opened.run(COMPARE)
    assert count_of(opened, "overlap") == len(first & second)
    text = opened.run("document.getElementById('summary').textContent")
    assert f" share {len(first & second):,} of them" in text
    shares = [float(share) for share in re.findall(r"([\d.]+)%", text)]
    assert shares == pytest.approx([100 * len(first & second) / k, 100 * k / N], abs=0.0501)
    for chosen, expected in {
        "both": first & second, "first": first - second, "second": second - first,
        "neither": ours.keys() - first - second,
    }.items():  # fmt: skip
        opened.run(enter("filter", chosen, "change"))
        assert count_of(opened, "shown") == len(expected)
        assert {row[6] for row in visible(opened)} <= expected
    opened.run(enter("filter", "all", "change"))
    opened.run(click("difference"))
    difference = {key: other[key] - ours[key] for key in ours}
    expected_ids = sorted(ours, key=lambda key: (-difference[key], ours[key]))
    rows = visible(opened)
    assert [row[6] for row in rows] == expected_ids[: len(rows)]
    assert [int(row[3].replace(",", "")) for row in rows] == [difference[row[6]] for row in rows]
    opened.run(enter("second", "-1", "change"))
    assert len(visible(opened)[0]) == 6
