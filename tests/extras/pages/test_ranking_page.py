"""The page to browse a ranking: what is in it, masked and escaped."""

import json
import re
from typing import Any

from mamushi.evaluation.masking import mask
from mamushi_extras.pages.ranking_page import page_texts, render

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> damn"


def embedded(html: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert len(found) == 1
    return dict(json.loads(found[0]))


def test_no_text_adds_markup() -> None:
    texts = {"a": EVIL, "<b>": "$data ${x} \x00 \u2028 &lt;", "c": "\\u003c"}
    data = {**page_texts([*texts], [*texts.values()]), "provenance": {EVIL: EVIL}}
    html = render("page", title=EVIL, data=data)
    assert html.count("<script") == html.count("</script>") == 2
    assert "<!--" not in html
    assert "<img" not in html
    data = embedded(html)
    assert data["texts"] == [mask(text) for text in texts.values()]
    assert data["ids"] == list(texts)
    assert data["provenance"] == {EVIL: EVIL}
