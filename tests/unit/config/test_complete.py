"""The configuration: what is filled in, what is coerced, and one clear line for each mistake."""

import runpy
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mamushi.config import grid
from mamushi.config.complete import complete
from mamushi.config.sources import files
from tests.support.configurations import ROOT, Config, minimal, paper

SECTIONS = ["data", "tokens", "training", "embedding", "evaluation", "execution"]


def test_the_schema_for_editors_takes_what_the_program_takes() -> None:
    rule = runpy.run_path(str(ROOT / "docs/keys.py"))["schema"]()
    Draft202012Validator(rule).validate(paper())
    assert not Draft202012Validator(rule).is_valid(paper() | {"models": {"x": {"famly": "llama"}}})


@pytest.mark.parametrize(
    ("selectors", "ratio"),
    [(["random", "mamushi_lr", "lexical"], "mamushi_lr"), (["mamushi_lr", "mamushi"], "mamushi")],
)
def test_the_ratio_is_estimated_by_a_selector_that_is_asked_for(
    selectors: list[str], ratio: str
) -> None:
    config = minimal()
    config["grid"] = {**config["grid"], "selectors": selectors}
    assert complete(config)["removal"]["ratio"] == ratio


def test_the_paper_needs_no_defaults() -> None:
    """config.yaml shows every key of its sections, so that a reader need not look further."""
    written, full = paper(), complete(paper())
    for section in SECTIONS:
        assert written[section] == full[section], section
    for axis, values in full["grid"].items():
        assert written["grid"][axis] == values
    assert set(full) == set(written)


def test_the_base_of_a_derived_selector_is_there() -> None:
    config = minimal()
    config["grid"]["selectors"] = ["mirror"]
    config["selectors"] = {"mirror": {"kind": "anti_mamushi", "of": "lr_cos"}}
    # The probe asks for random, lr_cos and mamushi.
    assert set(complete(config)["selectors"]) == {"mirror", "lr_cos", "mamushi", "random"}


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("learning_rate", "2.0e-5", 2.0e-5),
        ("batch_size", 16.0, 16),
        ("gradient_clip", "null", None),
    ],
)
def test_one_type_for_each_key(key: str, written: object, value: object) -> None:
    config = minimal()
    config["training"] = {key: written}
    completed = complete(config)["training"][key]
    assert completed == value
    assert type(completed) is type(value)


def test_paths_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["train.csv", "test.csv", "test_labels.csv.zip"]
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setenv("MAMUSHI_JIGSAW", str(tmp_path))
    datasets = complete(paper())["datasets"]
    assert datasets["newsgroups"]["path"] is None and files(datasets["newsgroups"]) == []
    assert files(datasets["jigsaw"]) == [str(tmp_path / name) for name in names]


@pytest.mark.parametrize(
    ("definition", "measurable"),
    [
        ({"kind": "jigsaw"}, True),
        ({"kind": "table", "forget": {"where": "x > 1"}}, False),
        ({"kind": "table", "forget": {"where": "x > 1"}, "section": "split"}, True),
    ],
)
def test_measuring_needs_an_evaluation_section(definition: Config, measurable: bool) -> None:
    config = minimal()
    config["datasets"]["mine"] = {"sections": {"inference": 1}, **definition}
    reasons = grid.hindrances(complete(config), {"datasets": ["mine"], "models": ["tiny"]})
    assert [reason.partition(":")[0] for reason in reasons] == (
        [] if measurable else ["datasets.mine.sections"]
    )


def test_a_second_version_of_an_unlearner_has_a_training_of_its_own() -> None:
    config = minimal()
    matched = {"kind": "neggrad_plus", "training": {"steps": "matched"}}
    config["unlearning"] = {"unlearners": ["neggrad_plus", "slow"], "training": {"epochs": 2}}
    config["unlearners"] = {"slow": matched}
    unlearners = complete(config)["unlearners"]
    assert unlearners["slow"]["training"] == {
        **unlearners["neggrad_plus"]["training"],
        "steps": "matched",
    }
    assert unlearners["slow"]["training"]["epochs"] == 2.0
