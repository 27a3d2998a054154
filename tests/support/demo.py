"""The demo's configuration, as it is and smaller."""

from typing import Any

import yaml

from tests.support.workflow import ROOT

CELL = {"dataset": "synthetic", "model": "tiny-llama", "seed": 0}
SELECTORS = ["random", "mamushi", "anti_mamushi", "oracle"]


def small(texts: tuple[int, int] = (120, 240), **training: object) -> dict[str, Any]:
    """One seed, two selectors, two budgets, and so many texts of each domain in each section."""
    text = (ROOT / "profiles/demo/science.yaml").read_text(encoding="utf-8")
    demo: dict[str, Any] = {"extends": None, **yaml.safe_load(text)}
    demo["selectors"]["mamushi"]["seeds_averaged"] = 2
    demo["evidence"] |= {"refits": {"whole": 2, "halves": 1}, "compared": []}
    demo["grid"] |= {"seeds": [0], "budgets": [0.3, 0.6], "selectors": ["random", "mamushi"]}
    sections = ("contamination", "inference", "evaluation")
    sizes = dict(zip(("forget", "retain"), texts, strict=True))
    demo["datasets"]["synthetic"]["sizes"] = {section: sizes for section in sections}
    demo["training"] |= training
    return demo


def science() -> dict[str, Any]:
    """The small demo of the end-to-end tests: trainings that are long enough to select by, and a
    target of unlearning that so few steps can reach."""
    demo = small(epochs=3, learning_rate=2.0e-3)
    demo["grid"]["selectors"] = list(SELECTORS)
    demo["unlearning"] |= {"unlearners": ["neggrad_plus"], "budgets": [0.3, 0.6], "target": 0.05}
    # The smallest start knows so little that its forget loss is near the paper's limit.
    demo["unlearners"] = {"neggrad_plus": {"learning_rate": 1.0e-3, "stop_forget_loss": 6.0}}
    relearning = {"steps": [1, 4], "learning_rate": 1.0e-3}
    demo["probe"] |= {"budget": 0.3, "relearning": relearning}
    return demo
