"""The page of the paper's claims names what is there, and the drawing of rules has all of them."""

import re
from pathlib import Path

import pytest

from mamushi.io import schemas
from mamushi.registry import find_files, import_file, plugins
from tests.support.pages import module_of
from tests.support.workflow import ROOT

PAPER = module_of(ROOT / "docs/paper.py")
CLAIMS = [claim for rows in PAPER.claims().values() for claim in rows]


def check_symbol(file: Path, name: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert re.search(rf"^ *(?:def|class) {name}\b", text, re.MULTILINE), (file, name)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says[:40])
def test_what_a_claim_names_is_there(claim: PAPER.Claim) -> None:
    file, _, name = claim.code.partition("::")
    check_symbol(ROOT / "workflow/mamushi" / file, name)
    kind, _, name = claim.shown.partition(":")
    if kind == "table":
        modules = [schemas, *map(import_file, find_files("mamushi_*/*/schemas.py"))]
        assert any(hasattr(module, name.upper()) for module in modules)
        assert (ROOT / f"workflow/report/tables/{name}.rst").exists()
    elif kind == "figure":
        assert name in plugins("figure") and (ROOT / f"workflow/report/{name}.rst").exists()
    else:
        file, _, name = claim.shown.partition("::")
        check_symbol(ROOT / "tests" / file, name)


def test_no_label_of_the_paper_is_missing(shared: Path) -> None:
    path = shared / "paper.tex"
    if not path.is_file():
        pytest.skip("the source of the paper is not there")
    labels = set(re.findall(r"\\label\{((?!sec:|app:)[^}]+)\}", path.read_text(encoding="utf-8")))
    parts = {label for label in labels if label.startswith(("sec", "app"))}
    assert {label for claim in CLAIMS for label in claim.labels.split()} == labels - parts


def test_the_page_is_made_from_the_claims() -> None:
    text = PAPER.PAGE.read_text(encoding="utf-8")
    assert text == PAPER.page(text), "python docs/paper.py"


def test_the_drawing_has_the_rules_of_the_core() -> None:
    dag = module_of(ROOT / "docs/dag.py")
    drawn = set(re.findall(r">([a-z]\w+)</text>", dag.PICTURE.read_text(encoding="utf-8")))
    rules = set(dag.rows())
    assert rules - drawn == dag.NOT_IN_THE_GRID | {"figure_study"}
    assert drawn - rules <= {"figures", *dag.STAGES.values()}
