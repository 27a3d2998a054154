"""The start page: it answers which texts, how many and what next, in this order;
what it links is there, and what is there it links."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from mamushi.evidence.advice import take
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi_extras.pages.start import write_start_page
from mamushi_runs import hooks
from tests.support.judged_files import WORDS, judged
from tests.support.ranked_files import (
    BOUND,
    STRONG,
    WEAK,
    frontier,
    write_frontiers,
    write_ranked,
)
from tests.support.start_files import CELL, MADE, write_results

PAIR = {"dataset": "texts", "model": "ours"}
QUESTIONS = ["Which texts?", "How many?", "What next?"]


class Page(HTMLParser):
    """Elements in their order, each with its attributes and all words in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, Any], list[str]]] = []
        self.all: list[tuple[str, dict[str, Any], list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        each: tuple[str, dict[str, Any], list[str]] = (tag, dict(attrs), [])
        self.all.append(each)
        if tag not in ("meta", "img", "br"):
            self.open.append(each)

    def handle_data(self, data: str) -> None:
        for _, _, words in self.open:
            words.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def of(self, tag: str, kind: str | None = None) -> list[str]:
        """The words of each element of a tag, and of a class if named."""
        return [
            " ".join("".join(words).split())
            for found, attrs, words in self.all
            if found == tag and (kind is None or kind in attrs.get("class", "").split())
        ]


def written(root: Path) -> str:
    assert write_start_page(root) == root / "index.html"
    return (root / "index.html").read_text(encoding="utf-8")


def opened(root: Path) -> Page:
    page = Page(written(root))
    assert page.open == []
    return page


def links(page: str) -> list[str]:
    found = re.findall(r' (?:href|src)="([^"]*)"', page)
    return [unquote(unescape(each.partition("#")[0])) for each in found]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results of a ranking of a user's table, by which half of the effect takes 5 of 20."""
    monkeypatch.chdir(tmp_path)
    folder = Path("results")
    write_ranked(folder, selectors=("lr_cos", "mamushi", "random"))
    (tmp_path / "my texts.csv").touch()
    loader = {"kind": "table", "loader": {"path": "my texts.csv"}}
    write_json(paths.under(folder, paths.DATA_CARD, **PAIR), {"settings": loader})
    rows = [*frontier("mamushi", 0.5, width=0.1), *frontier("random", 1.0)]
    write_frontiers(folder, [{**row, **PAIR} for row in rows])
    return folder


def test_answers_come_first_and_in_order(root: Path) -> None:
    page = opened(root)
    assert page.of("h3")[:3] == QUESTIONS
    heads = ["Which texts to remove", "texts, ours", "All that is here"]
    assert [*page.of("h1"), *page.of("h2")] == heads
    # The smallest list that is as long as is advised, with its verdict and the reasons of it.
    hrefs = [attrs["href"] for tag, attrs, _ in page.all if tag == "a"]
    assert hrefs[0] == "runs/texts/ours/seed0/removals/mamushi/beta0.50.parquet"
    (verdict,) = page.of("div", "verdict")
    assert "10 of 20 forget texts" in verdict and "check the list before deleting" in verdict
    assert all(reason in verdict for reason in (STRONG, BOUND))
    (number,) = (words for words in page.of("p") if "About" in words)
    assert "About 5 of 20 (25%) give half" in number and "interval is 16% to 37%" in number
    listed = "results/runs/texts/ours/seed0/removals/mamushi/beta0.50.parquet"
    assert [words.splitlines() for words in page.of("pre")] == [
        ["mamushi list --budget 0.25 --selector mamushi"],
        [f"mamushi apply {listed} --data 'my texts.csv' --out 'my texts.clean.csv'"],
        ["mamushi plan mamushi run"],
    ]


@pytest.mark.parametrize("act", ["refuse", "comparison"])
def test_no_list_is_offered_that_should_not_be_acted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_ranked(Path("results"), WEAK, ("mamushi",) if act == "refuse" else ("random",))
    page = opened(Path("results"))
    (verdict,) = page.of("div", act)
    assert verdict.startswith("No list to act on.")
    assert not any("mamushi apply" in words for words in page.of("code"))


def test_which_list_is_taken() -> None:
    lists = [{"beta": beta} for beta in (0.1, 0.2, 0.5)]
    taken = [take(lists, budget)["beta"] for budget in (None, 0.05, 0.2, 0.21, 0.9)]
    assert taken == [0.1, 0.1, 0.2, 0.5, 0.5]


def test_it_links_all_that_is_there_and_nothing_else(tmp_path: Path) -> None:
    write_results(tmp_path)
    page = written(tmp_path)
    assert {*links(page)} == {*MADE}
    # At the budget of the list that is recommended.
    assert f'{CELL}/ranking.html#0.1"' in page
    assert not any(re.match(r"[a-z]+:|/", each) for each in links(page))
    assert str(tmp_path) not in page
    assert "http://" not in page and "https://" not in page and "default-src 'none'" in page


def test_each_list_has_its_own_verdict_and_comparisons_look_like_it(tmp_path: Path) -> None:
    write_results(tmp_path)
    by_chance = judged("comparison")
    by_chance["judgement"]["ranking"] = "a comparison, not to be acted on: drawn by chance"
    drawn = tmp_path / CELL / "removals" / "chance" / "beta0.10.json"
    drawn.parent.mkdir()
    drawn.with_suffix(".parquet").touch()
    counts = {"beta": 0.1, "removed": 3, "n_forget": 9, "n_retain": 9}
    write_json(drawn, {**counts, **by_chance})
    page = written(tmp_path)
    assert "<h3>d, m, seed 0</h3>" in page
    assert f"<li><b>s</b>: {WORDS}</li>" in page
    own, head, other = re.findall(r"<tr.*?</tr>", page, re.DOTALL)[1:]
    assert ">1,200 texts</a>" in own and own.count("act on it") == 1 and "comparison" not in own
    assert '<tr class="comparison"' in head and "For comparison alone, not to be acted on" in head
    assert '<tr class="comparison"' in other and "act on it" not in other
    assert '<li class="comparison"><b>chance</b>: a comparison, not to be acted on: drawn' in page


def test_a_run_that_ends_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    hooks.print_start_page()
    write_results(tmp_path / "results")
    hooks.print_start_page()
    assert capsys.readouterr().err == f"Start page: {Path('results/index.html')}\n"
    assert (tmp_path / "results" / "index.html").is_file()
