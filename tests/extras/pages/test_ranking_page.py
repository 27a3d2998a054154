"""The ends of a ranking and the page to browse it: what is in them, masked and escaped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.evaluation.masking import mask
from mamushi.evidence.ranking import SelectorRanking, end_rows, excerpt
from mamushi.io import paths
from mamushi_extras.pages.ranking_page import (
    page_data,
    ranking_html,
)
from tests.support import score_files

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> damn"


def with_retain(ids: list[str]) -> tuple[list[str], list[str]]:
    """The ids with two of retain texts behind them, and the domains of all."""
    return [*ids, "r0", "r1"], ["forget"] * len(ids) + ["retain"] * 2


def write_scores(path: Path, ids: list[str], scores: Any, ranks: Any) -> None:
    rank = [*ranks, 0, 0]
    score_files.write_scores(path, *with_retain(ids), [*scores, None, None], rank)


def write_refits(path: Path, ids: list[str], *scores: list[float]) -> None:
    again = [("whole", i, [*values, None, None]) for i, values in enumerate(scores)]
    score_files.write_refits(path, *with_retain(ids), again)


def write_texts(path: Path, texts: dict[str, str]) -> None:
    score_files.write_examples(path, [*texts], ["forget"] * len(texts), text=[*texts.values()])


def embedded(html: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert len(found) == 1
    return dict(json.loads(found[0]))


def test_an_excerpt_is_folded_masked_and_cut() -> None:
    assert excerpt("  Well,\n\tdamn \u2028 it ") == "Well, d*** it"
    assert excerpt("x" * 300) == "x" * 300
    assert excerpt("x" * 301) == "x" * 299 + "…"
    # A listed word that the cut goes through stays masked.
    assert excerpt("ab crap", 6) == "ab c*…"
    assert excerpt("") == ""


def made(texts: dict[str, str], **named: Any) -> dict[str, Any]:
    ids = list(texts)
    first = SelectorRanking(ids, np.linspace(1, 0, len(ids)))
    again = np.array([[3, 2, 1], [2, 1, 3]])[:, : len(ids)]
    second = SelectorRanking(ids[::-1], np.linspace(2, 1 / 3, len(ids)), again)
    rankings = {"one": first, "two": second}
    return page_data(rankings, lambda wanted: [texts[i] for i in wanted], [0.1, 0.5], named)


def test_the_data_of_the_page() -> None:
    data = made({"a": "damn", "b": "y", "c": "z"}, provenance={"x": 1})
    assert data == {
        "provenance": {"x": 1},
        "budgets": ["0.1", "0.5"],
        "total": 3,
        "ids": ["a", "b", "c"],
        "texts": ["d***", "y", "z"],
        "hidden": {"0": [[1, "amn"]]},
        "selectors": [
            {
                **{"name": "one", "verdict": "", "compared": False, "ranks": [1, 2, 3]},
                **{"scores": [1.0, 0.5, 0.0], "again": []},
            },
            {
                **{"name": "two", "verdict": "", "compared": False, "ranks": [3, 2, 1]},
                **{"scores": [0.333333, 1.16667, 2.0], "again": [[1, 2, 3], [3, 1, 2]]},
            },
        ],
    }


def test_no_text_adds_markup() -> None:
    texts = {"a": EVIL, "<b>": "$data ${x} \x00 \u2028 &lt;", "c": "\\u003c"}
    html = ranking_html(EVIL, made(texts, provenance={EVIL: EVIL}))
    assert html.count("<script") == html.count("</script>") == 2
    assert "<!--" not in html
    assert "<img" not in html
    data = embedded(html)
    assert data["texts"] == [mask(text) for text in texts.values()]
    assert data["ids"] == list(texts)
    assert data["provenance"] == {EVIL: EVIL}


def test_the_table_of_both_ends(tmp_path: Path) -> None:
    cell = {"dataset": "d", "model": "m", "seed": 0}
    texts = {f"i{p:02d}": f"damn\n\n{p} " + "word " * 100 for p in range(25)}
    write_texts(paths.under(tmp_path, paths.EXAMPLES, dataset="d"), texts)
    path = paths.under(tmp_path, paths.SCORES, **cell, selector="mamushi")
    write_scores(path, list(texts), np.linspace(5, -5, 25), range(1, 26))
    rows = end_rows(tmp_path, {**cell, "selector": "mamushi"})
    assert [row["id"] for row in rows] == [*list(texts)[:10], *list(texts)[:-11:-1]]
    assert rows[10] | {"text": ""} == {
        **{**cell, "selector": "mamushi", "end": "bottom", "place": 1, "rank": 25},
        **{"score": -5.0, "id": "i24", "text": ""},
    }
    assert all(re.match(r"d\*\*\* \d+ word", row["text"]) for row in rows)
    assert {len(row["text"]) for row in rows} <= {299, 300}
