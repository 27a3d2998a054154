"""The configuration: what is filled in, and what is coerced."""

import runpy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mamushi.config import grid
from mamushi.config.complete import complete
from tests.support.configurations import ROOT, minimal, paper

SECTIONS = ["data", "tokens", "training", "embedding", "evaluation", "execution"]


def completed(**changes: Any) -> dict[str, Any]:
    """The least configuration with these sections, of the grid with these keys."""
    return complete(minimal() | changes | {"grid": minimal()["grid"] | changes.get("grid", {})})


def test_the_schema_for_editors_takes_what_the_program_takes() -> None:
    rule = runpy.run_path(str(ROOT / "docs/keys.py"))["schema"]()
    Draft202012Validator(rule).validate(paper())
    assert not Draft202012Validator(rule).is_valid(paper() | {"models": {"x": {"famly": "llama"}}})


def test_the_paper_needs_no_defaults() -> None:
    """config.yaml shows every key of its sections, so that a reader need not look further."""
    written, full = paper(), complete(paper())
    assert {key: full[key] for key in SECTIONS} == {key: written[key] for key in SECTIONS}
    assert full["grid"] == written["grid"] and set(full) == set(written)


@pytest.mark.parametrize("names", [["random", "mamushi_lr", "lexical"], ["mamushi_lr", "mamushi"]])
def test_the_ratio_is_estimated_by_a_selector_that_is_asked_for(names: list[str]) -> None:
    ratio = completed(grid={"selectors": names})["removal"]["ratio"]
    assert ratio == ("mamushi" if "mamushi" in names else "mamushi_lr")


@pytest.mark.parametrize("section", [None, "split"])
def test_measuring_needs_an_evaluation_section(section: str | None) -> None:
    mine: dict[str, Any] = {"kind": "table", "forget": {"where": "x > 1"}, "section": section}
    mine |= {"sections": {"inference": 1}}
    full = completed(datasets=minimal()["datasets"] | {"mine": mine})
    reasons = grid.hindrances(full, {"datasets": ["mine"], "models": ["tiny"]})
    assert len(reasons) == (section is None)


def test_a_second_version_of_an_unlearner_has_a_training_of_its_own() -> None:
    slow = {"slow": {"kind": "neggrad_plus", "training": {"steps": "matched"}}}
    section = {"unlearners": ["neggrad_plus", "slow"], "training": {"epochs": 2}}
    unlearners = completed(unlearning=section, unlearners=slow)["unlearners"]
    first = unlearners["neggrad_plus"]["training"]
    assert unlearners["slow"]["training"] == {**first, "steps": "matched", "epochs": 2.0}
