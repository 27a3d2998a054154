"""The page to browse a ranking: what is in it, masked and escaped."""

import json
import re
from typing import Any

import numpy as np

from mamushi.evaluation.masking import mask
from mamushi_extras.pages.ranking_page import page_data, ranking_html

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> damn"


def embedded(html: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert len(found) == 1
    return dict(json.loads(found[0]))


def made(texts: dict[str, str], **named: Any) -> dict[str, Any]:
    again = [[3, 2, 1], [1, 2, 3], [3, 1, 2]]
    selectors = [
        {"name": name, "verdict": "", "compared": False, "ranks": np.array(ranks), "scores": scores}
        for name, ranks, scores in (
            ("one", [[1, 2, 3]], np.array([1, 0.5, 0])),
            ("two", again, np.array([1 / 3, 7 / 6, 2])),
        )
    ]
    budgets = [0.1, 0.5]
    return page_data([*texts], selectors, lambda ids: [texts[i] for i in ids], budgets, named)


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
