"""Names of models, and which configured models are asked what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mamushi.config import arms, questions
from mamushi.config.arms import Arm
from mamushi.errors import UserError

NAMES = {
    **{name: Arm(endpoint=name) for name in arms.ENDPOINTS},
    "retrained/mamushi/beta0.10": Arm(selector="mamushi", beta="0.10"),
    "salun/mamushi/beta0.10": Arm(unlearner="salun", selector="mamushi", beta="0.10"),
    "salun/whole": Arm(unlearner="salun"),
    "salun/lists/mine": Arm(unlearner="salun", list="mine"),
}
CONFIG: dict[str, Any] = {
    "models": {"plain": {}, "ours": {"contaminated": True, "base": "clean"}},
    "unlearners": {"salun": {}, "a.b": {}},
    "unlearning": {"start": "beta0", "lists": {"mine": "ids.txt"}},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_how_a_model_was_made(name: str) -> None:
    assert Arm.parse(name) == NAMES[name] and str(NAMES[name]) == name


@pytest.mark.parametrize("name", ["mine", "salun", "salun/mamushi/0.10", "salun/lists/a/b", ""])
def test_what_is_no_name_of_a_model(name: str) -> None:
    with pytest.raises(ValueError, match="no model of a cell"):
        Arm.parse(name)


@pytest.mark.parametrize(
    ("name", "model", "origin", "base"),
    [
        ("gold", "plain", "gold", "plain"),
        ("retrained/a/beta0.10", "plain", "beta0", "plain"),
        ("salun/whole", "plain", "beta0", "plain"),
        # What is contaminated as it is starts there, and is retrained from its base.
        ("contaminated", "ours", "contaminated", "ours"),
        ("salun/a/beta0.10", "ours", "contaminated", "ours"),
        ("retrained/a/beta0.10", "ours", "beta0", "clean"),
        ("gold", "ours", "gold", "clean"),
    ],
)
def test_what_a_model_is_opened_from(name: str, model: str, origin: str, base: str) -> None:
    arm = Arm.parse(name)
    assert (arm.origin(CONFIG, model), arm.base(CONFIG, model)) == (origin, base)


def test_the_wildcard_matches_models_that_are_kept() -> None:
    kept = re.compile(arms.kept(CONFIG))
    found = {name for name in [*NAMES, "axb/lists/mine", "gold2"] if kept.fullmatch(name)}
    assert found == {*arms.ENDPOINTS, "salun/lists/mine"}


def test_older_results_are_refused_in_one_line(tmp_path: Path) -> None:
    cell = tmp_path / "results/runs/d/m/seed0"
    (cell / "arms/gold").mkdir(parents=True)
    arms.require_current(tmp_path / "results")
    (cell / "gold").mkdir()
    with pytest.raises(UserError, match="is of an older version") as error:
        arms.require_current(tmp_path / "results")
    assert "move the folder" in str(error.value) and "\n" not in str(error.value)


def test_models_of_two_sections_are_asked_by_both() -> None:
    axes = {"datasets": ["d"], "models": ["plain"], "seeds": [0, 1], "unlearners": ["salun"]}
    config = {
        **CONFIG,
        "probe": {**axes, "selectors": ["a", "b"], "budget": 0.2},
        "left": {**axes, "seeds": [1], "selectors": ["b"], "budgets": [0.2, 0.5]},
    }
    assert questions.models(config, ()) == {}
    both = questions.models(config, ("probe", "left"))
    assert (both["seed"], both["selector"], both["beta"]) == (["1"], ["b"], ["0.20"])
    assert questions.asked("retrain", ("probe",)) == ["relearn"]
    every = ["generate", "relearn", "membership"]
    assert questions.asked("unlearn", ("probe", "left")) == every
