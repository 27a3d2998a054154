"""Names of models."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mamushi.config import arms
from mamushi.config.arms import Arm

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
    assert Arm.parse(name) == NAMES[name]


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


def test_the_wildcard_matches_every_model_of_a_cell() -> None:
    pattern = re.compile(arms.pattern(CONFIG | {"selectors": {"mamushi": {}, "a": {}}}))
    wrong = ["axb/lists/mine", "gold2", "salun/c/beta0.10", "salun/a/beta1"]
    assert [name for name in [*NAMES, *wrong] if not pattern.fullmatch(name)] == wrong
