"""The start page: it answers which texts, how many and what next, in this order;
what it links is there, and what is there it links."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi.io.tables import write_table
from mamushi_extras.effects.schemas import EFFECTS
from mamushi_extras.pages.start import write_start_page
from tests.support.ranked_files import (
    BOUND,
    CELL,
    CHANCE,
    STRONG,
    WEAK,
    frontier,
    write_frontiers,
    write_ranked,
)

PAIR = {"dataset": "texts", "model": "ours"}
LISTS = "runs/texts/ours/seed0/removals"
BUDGETS = ("0.10", "0.50")
BESIDE = [
    *("runs/texts/ours/seed0/ranking.html", "data/texts/card.json", "report.html"),
    *("figures/sad.png", "figures/study/turned.png", "figures/diagnostics/texts/ours/seed0.png"),
    *("tables/sad.csv", "tables/turned/sad.csv"),
]
"""What else a results folder has that is linked."""


def opened(root: Path) -> str:
    assert write_start_page(root) == root / "index.html"
    return (root / "index.html").read_text(encoding="utf-8")


def words_of(page: str, tag: str, kind: str = "") -> list[str]:
    """The words of each element of a tag, and of a class if named."""
    elements = re.findall(rf"<{tag}\b([^>]*)>(.*?)</{tag}>", page, re.DOTALL)
    inside = [text for attributes, text in elements if kind in attributes]
    return [" ".join(unescape(re.sub("<[^>]*>", "", text)).split()) for text in inside]


def links(page: str) -> list[str]:
    targets = re.findall(r' (?:href|src)="([^"]*)"', page)
    return [unquote(unescape(target.partition("#")[0])) for target in targets]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The results of a ranking of a user's table, by which half of the effect takes 5 of 20."""
    folder = Path("results")
    write_ranked(folder, selectors=("lr_cos", "mamushi", "random"))
    for name in BESIDE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "my texts.csv").touch()
    loader = {"kind": "table", "loader": {"path": "my texts.csv"}}
    write_json(paths.under(folder, paths.DATA_CARD, **PAIR), {"settings": loader})
    rows = [*frontier("mamushi", 0.5, width=0.1), *frontier("random", 1.0)]
    write_frontiers(folder, [{**row, **PAIR} for row in rows])
    return folder


def test_answers_come_first_and_in_order(root: Path) -> None:
    page = opened(root)
    assert words_of(page, "h3")[:3] == ["Which texts?", "How many?", "What next?"]
    # The smallest list that is as long as is advised, with its verdict and the reasons of it.
    assert links(page)[0] == f"{LISTS}/mamushi/beta0.50.parquet"
    (verdict,) = words_of(page, "div", "verdict")
    assert "10 of 20 forget texts" in verdict and "check the list before deleting" in verdict
    assert all(reason in verdict for reason in (STRONG, BOUND))
    (number,) = (words for words in words_of(page, "p") if "About" in words)
    assert "About 5 of 20 (25%) give half" in number and "the span is 16% to 37%" in number
    listed = f"results/{LISTS}/mamushi/beta0.50.parquet"
    assert words_of(page, "pre") == [
        "mamushi list --budget 0.25 --selector mamushi",
        f"mamushi apply {listed} --data 'my texts.csv' --out 'my texts.clean.csv'",
        "mamushi plan mamushi run",
    ]
    measured = {**dict.fromkeys(EFFECTS.schema.names), **PAIR, "selector": "mamushi", "beta": 0.5}
    measured |= {"lists": 1, "seeds": 3, "steps": "aligned", "equal_steps": True}
    measured |= {"retain_margin": 0.02, "non_inferior": "yes", "deep_net_withheld": "too few"}
    measured |= {"recovered_net": 0.574, "recovered_net_low": 0.5, "recovered_net_high": 0.65}
    write_table(paths.under(root, paths.TABLE, table="effects"), EFFECTS, [measured])
    page = opened(root)
    assert words_of(page, "h3")[2] == "What does it buy?"
    (bought,) = (words for words in words_of(page, "p") if "Retrained without" in words)
    assert "recovers 57% [50, 65] of" in bought and "not told (too few) of its deep" in bought
    paths.under(root, paths.FRONTIER, **CELL).unlink()
    page = opened(root)
    assert any(words.startswith("Not estimated.") for words in words_of(page, "p"))
    assert words_of(page, "pre")[0] == "mamushi run evidence"
    # Nothing is advised, so that the smallest list is taken.
    assert "2 of 20 forget texts" in words_of(page, "div", "verdict")[0]


@pytest.mark.parametrize("act", ["refuse", "comparison"])
def test_no_list_is_offered_that_should_not_be_acted_on(act: str) -> None:
    write_ranked(Path("results"), WEAK, ("mamushi",) if act == "refuse" else ("random",))
    page = opened(Path("results"))
    (verdict,) = words_of(page, "div", act)
    assert verdict.startswith("No list to act on.")
    assert not any("mamushi apply" in words for words in words_of(page, "code"))


def test_it_links_all_that_is_there_and_nothing_else(root: Path, tmp_path: Path) -> None:
    odd = root / "tables" / '"><b>&%41 ?#.csv'
    odd.touch()
    page = opened(root)
    others = {f"{LISTS}/{name}/beta{b}.parquet" for name in ("lr_cos", "random") for b in BUDGETS}
    best = f"{LISTS}/mamushi/beta0.50.parquet"
    assert {*links(page)} == {best, *others, *BESIDE, odd.relative_to(root).as_posix()}
    assert str(tmp_path) not in page and '"><b>&' not in page
    assert "http://" not in page and "https://" not in page and "default-src 'none'" in page
    # What nobody is to act on looks like it.
    assert f"<li><b>lr_cos</b>: {STRONG} (" in page
    assert f'<li class="comparison"><b>random</b>: {CHANCE} (' in page
