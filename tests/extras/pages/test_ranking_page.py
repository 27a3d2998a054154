"""The ends of a ranking and the page to browse it: what is in them, masked and escaped."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.evaluation.masking import mask
from mamushi.evidence.ranking import SelectorRanking, excerpt, read_ranking, read_texts_of
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata, read_table
from mamushi_extras.pages.ranking_page import (
    PAGE_FOLDER,
    PAGE_SHA256,
    hidden,
    page_data,
    ranking_html,
)
from tests.support import score_files
from tests.support.judged_files import WORDS, write_stability

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


def test_the_digest_of_the_page_follows_its_files() -> None:
    names = ("head.html", "page.html", "page.css", "page.js")
    parts = [(PAGE_FOLDER / name).read_bytes() for name in names]
    found = hashlib.sha256(b"\0".join(parts)).hexdigest()
    assert found == PAGE_SHA256, "set PAGE_SHA256 to the digest on the left"


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


@pytest.mark.parametrize(
    "text", ["Well, damn!", "\U0001d41d damn, \ufb01 D\u0101mn", EVIL, "\ud83d damn"]
)
def test_what_is_masked_can_be_put_back(text: str) -> None:
    shown = mask(text).encode("utf-16-le", "surrogatepass")
    found, end = b"", 0
    for place, word in hidden(mask(text), text):
        found += shown[2 * end : 2 * place] + word.encode("utf-16-le", "surrogatepass")
        end = place + len(word)
    assert (found + shown[2 * end :]).decode("utf-16-le", "surrogatepass") == text
    assert "*" in mask(text)


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


def test_the_policy_allows_the_page_s_own_script_and_style_alone() -> None:
    html = ranking_html("t", made({"a": "x", "b": "y"}))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    allowed = dict(part.split(" ", 1) for part in policy[1].split("; "))
    assert allowed.pop("default-src") == "'none'"
    for name, element in (("script-src", "script"), ("style-src", "style")):
        inside = re.search(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
        assert inside is not None
        digest = b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert allowed.pop(name) == f"'sha256-{digest}'"
    assert set(allowed.values()) == {"'none'"}
    # It comes before what it governs.
    assert policy.start() < html.index("<style>")
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(|innerHTML|document\.write", html)


def test_the_stage_writes_the_same_page_twice(tmp_path: Path) -> None:
    (tmp_path / "refits").mkdir()
    one, two, examples, stable = (tmp_path / f"{n}.parquet" for n in ("one", "two", "e", "stable"))
    write_texts(examples, {"a": "damn", "b": "y", "c": "z"})
    write_stability(stable)
    write_scores(one, ["a", "b", "c"], [3.0, 2.0, 1.0], [1, 2, 3])
    write_scores(two, ["a", "b", "c"], [3.0, 2.0, 9.0], [2, 3, 1])
    refits = [tmp_path / "refits/one.parquet", tmp_path / "refits/two.parquet"]
    write_refits(refits[0], ["a", "b", "c"], [1.0, 2.0, 3.0])
    write_refits(refits[1], ["a", "b", "c"], [3.0, 1.0, 2.0], [5.0, 5.0, 7.0])
    ranked = read_ranking(two)
    assert (ranked.ids, ranked.scores.tolist()) == (["c", "a", "b"], [9.0, 3.0, 2.0])
    assert read_texts_of(examples, ["b", "a"]) == ["y", "damn"]
    compared = {"one": None, "two": "the ranking by one upside down"}
    settings = {"dataset": "d", "model": "m", "seed": 3, "budgets": [0.5]}
    settings |= {"selectors": [*compared], "compared": compared}
    out = tmp_path / "out.html"
    words = ["ranking", "--examples", examples, "--scores", one, two, "--refits", *refits]
    words += ["--stability", stable, stable, "--out", out, "--settings", json.dumps(settings)]
    pages = [out.read_bytes() for _ in range(2) if main([*map(str, words)]) == 0]
    assert len(pages) == 2 and pages[0] == pages[1]
    data = embedded(pages[0].decode())
    assert data["selectors"][1] == {
        "verdict": "a comparison, not to be acted on: the ranking by one upside down",
        "compared": True,
        **{"name": "two", "ranks": [2, 3, 1], "scores": [3.0, 2.0, 9.0]},
        "again": [[1, 3, 2], [2, 3, 1]],
    }
    assert not data["selectors"][0]["compared"] and data["selectors"][0]["verdict"] == WORDS
    read = {"examples", "scores/0", "scores/1", "refits/0", "refits/1"}
    assert set(data["provenance"]["inputs"]) == read | {"stability/0", "stability/1"}
    assert "<title>Ranking of d by m, seed 3</title>" in pages[0].decode()


def test_the_table_of_both_ends(tmp_path: Path) -> None:
    cell = {"dataset": "d", "model": "m", "seed": 0}
    texts = {f"i{p:02d}": f"damn\n\n{p} " + "word " * 100 for p in range(25)}
    write_texts(paths.under(tmp_path, paths.EXAMPLES, dataset="d"), texts)
    path = paths.under(tmp_path, paths.SCORES, **cell, selector="mamushi")
    write_scores(path, list(texts), np.linspace(5, -5, 25), range(1, 26))
    settings = json.dumps({"cells": [cell], "selector": "mamushi"})
    out = tmp_path / "tables"
    command = ["qualitative", "--root", str(tmp_path), "--out-folder", str(out)]
    assert main([*command, "--settings", settings]) == 0
    rows = read_table(out / "qualitative_ranking.parquet", schemas.QUALITATIVE_RANKING).to_pylist()
    assert [row["id"] for row in rows] == [*list(texts)[:10], *list(texts)[:-11:-1]]
    assert rows[10] | {"text": ""} == {
        **{**cell, "selector": "mamushi", "end": "bottom", "place": 1, "rank": 25},
        **{"score": -5.0, "id": "i24", "text": ""},
    }
    assert all(re.match(r"d\*\*\* \d+ word", row["text"]) for row in rows)
    assert {len(row["text"]) for row in rows} <= {299, 300}
    about = read_metadata(out / "qualitative_ranking.parquet")
    assert set(about["inputs"]) == {"examples/d/m/seed0", "scores/d/m/seed0"}
    lines = (out / "qualitative_ranking.csv").read_text(encoding="utf-8").splitlines()
    assert [row["id"] for row in csv.DictReader(lines)] == [row["id"] for row in rows]
