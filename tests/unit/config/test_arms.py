"""Names of models."""

from typing import Any

import pytest

from mamushi.config import arms
from mamushi.config.arms import Arm
from mamushi.io import paths

NAMES = {
    **{name: Arm(endpoint=name) for name in arms.ENDPOINTS},
    "retrained/mamushi/beta0.10": Arm(selector="mamushi", beta="0.10"),
    "salun/mamushi/beta0.10": Arm(unlearner="salun", selector="mamushi", beta="0.10"),
    "salun/whole": Arm(unlearner="salun"),
    "salun/lists/mine": Arm(unlearner="salun", list="mine"),
}
CONFIG: dict[str, Any] = {
    "models": {"plain": {}, "ours": {"contaminated": True, "base": "clean"}},
    "selectors": {"a": {"kind": "random"}},
    "unlearning": {"start": "beta0", "lists": {"mine": "ids.txt"}},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_how_a_model_was_made(name: str) -> None:
    assert Arm.parse(name) == NAMES[name]
    with pytest.raises(ValueError, match="no model of a cell"):
        Arm.parse(f"{name}/2")


@pytest.mark.parametrize(
    ("name", "model", "base", "trained"),
    [
        *(("base", "plain", "plain", None), ("gold", "plain", "plain", "gold")),
        ("retrained/a/beta0.10", "plain", "plain", "retrained/a/beta0.10"),
        ("salun/whole", "plain", "plain", "beta0"),
        # What is contaminated as it is starts there, and is retrained from its base.
        *(("contaminated", "ours", "ours", None), ("salun/a/beta0.10", "ours", "ours", None)),
        ("retrained/a/beta0.10", "ours", "clean", "retrained/a/beta0.10"),
        ("gold", "ours", "clean", "gold"),
    ],
)
def test_what_a_model_is_opened_from(name: str, model: str, base: str, trained: str | None) -> None:
    files = arms.arm_files(CONFIG, model, name)
    assert files["model_card"].format(model=model) == paths.MODEL_CARD.format(model=base)
    of_arm = trained and paths.TRAINED.replace("{arm}", trained)
    assert files.get("trained") == of_arm
    assert ("unlearned" in files) == name.startswith("salun")
    assert files.get("removal") == (paths.REMOVAL if "/a/" in name else None)
