"""The start page answers: which texts, how many, what that buys and what next, in this order."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mamushi.evaluation.crossed import OVERSHOOTS
from mamushi.evidence.advice import take
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi_extras.pages.start import write_start_page
from tests.support.ranked_files import (
    BOUND,
    CELL,
    STRONG,
    WEAK,
    frontier,
    write_effects,
    write_frontiers,
    write_ranked,
)

PAIR = {"dataset": "texts", "model": "ours"}
QUESTIONS = ["Which texts?", "How many?", "What does it buy?", "What next?"]


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


def opened(root: Path) -> Page:
    assert write_start_page(root) == root / "index.html"
    page = Page((root / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    return page


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


def test_it_says_what_overshoots(root: Path) -> None:
    write_effects(root, recovered_beside_gold=OVERSHOOTS, deep_beside_gold=OVERSHOOTS)
    (bought,) = (words for words in opened(root).of("p") if "Retrained" in words)
    assert "It overshoots: it knows less of them than the model that saw none" in bought
    assert "30% (10% to 50%), and overshoots." in bought


def test_answers_come_first_and_in_order(root: Path) -> None:
    write_effects(root)
    page = opened(root)
    assert page.of("h3")[:4] == QUESTIONS
    assert [*page.of("h1"), *page.of("h2")] == [
        "Which texts to remove", "texts, ours", "All that is here",
    ]  # fmt: skip
    # The smallest list that is as long as is advised, with its verdict and the reasons of it.
    links = [attrs["href"] for tag, attrs, _ in page.all if tag == "a"]
    assert links[0] == "runs/texts/ours/seed0/removals/mamushi/beta0.50.parquet"
    (verdict,) = page.of("div", "verdict")
    assert "10 of 20 forget texts" in verdict and "check the list before deleting" in verdict
    assert all(reason in verdict for reason in (STRONG, BOUND))
    number, bought = (words for words in page.of("p") if "About" in words or "Retrained" in words)
    assert "About 5 of 20 (25%) give half" in number and "interval is 16% to 37%" in number
    assert "may need 16% to 50%" in number
    assert bought.startswith("Retrained without 50% of the forget texts, a model has recovered 60%")
    assert "(95% interval 50% to 70%)" in bought and "different numbers of steps" in bought
    assert "that word frequencies do not explain it has recovered 30% (10% to 50%)." in bought
    assert "overshoots" not in bought


def test_what_was_not_estimated_or_measured_says_how_it_is(root: Path) -> None:
    paths.under(root, paths.FRONTIER, **CELL).unlink()
    page = opened(root)
    said = page.of("p")
    assert any(words.startswith("Not estimated.") for words in said)
    assert any(words.startswith("Not measured.") for words in said)
    assert page.of("pre")[0] == "mamushi run evidence"
    # Nothing is advised, so that the smallest list is taken.
    assert "2 of 20 forget texts" in page.of("div", "verdict")[0]


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
    assert [take(lists, budget)["beta"] for budget in (None, 0.05, 0.2, 0.21, 0.9)] == [
        0.1, 0.1, 0.2, 0.5, 0.5,
    ]  # fmt: skip


def test_what_cannot_be_measured_offers_no_command_for_it(root: Path) -> None:
    assert write_start_page(root, (), {"datasets": {}, "models": {}})
    assert "mamushi plan" in (root / "index.html").read_text(encoding="utf-8")
    vectors = {"embeddings": {"path": "v.parquet", "id": "id", "vector": "vector"}}
    dataset = {"kind": "table", "forget": {"where": "a == 1"}, "sections": {"inference": 1.0}}
    config = {"datasets": {"texts": dataset}, "models": {"ours": vectors}}
    assert write_start_page(root, (), config)
    said = (root / "index.html").read_text(encoding="utf-8")
    assert "mamushi plan" not in said and "Not measured, and with this configuration" in said
