"""The start page: what it links is there, and what is there it links."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from mamushi.io.files import write_json
from mamushi_extras.pages.start import write_start_page
from mamushi_runs import hooks
from tests.support.judged_files import WORDS, judged
from tests.support.start_files import CELL, MADE, write_results


def written(root: Path) -> str:
    assert write_start_page(root) == root / "index.html"
    return (root / "index.html").read_text(encoding="utf-8")


def links(page: str) -> list[str]:
    found = re.findall(r' (?:href|src)="([^"]*)"', page)
    return [unquote(unescape(each.partition("#")[0])) for each in found]


def test_it_links_all_that_is_there_and_nothing_else(tmp_path: Path) -> None:
    write_results(tmp_path)
    page = written(tmp_path)
    found = links(page)
    assert {*found} == {*MADE}
    # At the budget of the list that is recommended.
    assert f'{CELL}/ranking.html#0.1"' in page
    assert all((tmp_path / each).is_file() for each in found)


def test_it_is_of_no_place_and_asks_for_nothing(tmp_path: Path) -> None:
    write_results(tmp_path)
    page = written(tmp_path)
    assert not any(re.match(r"[a-z]+:|/", each) for each in links(page))
    assert str(tmp_path) not in page
    assert "http://" not in page and "https://" not in page
    assert "default-src 'none'" in page


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
    assert page == written(tmp_path)


@pytest.mark.parametrize("content", ["{]", "[]", '{"removed": 3}'])
def test_a_damaged_or_older_manifest_costs_no_page(tmp_path: Path, content: str) -> None:
    write_results(tmp_path)
    (tmp_path / CELL / "removals/s/beta0.10.json").write_text(content, encoding="utf-8")
    page = written(tmp_path)
    assert f"{CELL}/ranking.html" in links(page)
    assert ">list</a>" in page and WORDS not in page


def test_names_add_no_markup(tmp_path: Path) -> None:
    odd = tmp_path / "tables" / '"><b>&%41 ?#.csv'
    odd.parent.mkdir(parents=True)
    odd.touch()
    page = written(tmp_path)
    assert "<b>" not in page
    assert links(page) == [odd.relative_to(tmp_path).as_posix()]


def test_a_run_that_ends_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hooks.start_page() is None
    write_results(tmp_path / "results")
    assert hooks.start_page() == f"Start page: {os.path.join('results', 'index.html')}"
    assert (tmp_path / "results" / "index.html").is_file()
