"""Tables of what the scores say, for tests of the pages that show them."""

from typing import Any

SEPARATION = {
    **{"auc": 0.93, "auc_low": 0.9, "auc_high": 0.95, "matched": 0.92, "matched_low": 0.89},
    "follows": [],
}
WORDS = (
    "strong separation, AUC 0.93 [0.90, 0.95], up to 1.00 if 5% of the labels are wrong at random"
)
"""What follows from it of a ranking."""


def judged(act: str = "take") -> dict[str, Any]:
    """What a manifest says of a list whose ranking is worth ``WORDS``."""
    found = {"act": act, "ranking": WORDS, "list": "1 of 9 texts are toss-ups"}
    return {"verdict": f"act on it: {WORDS}", "judgement": found, "expected": {"by": "s"}}
