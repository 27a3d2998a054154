"""Unlearners beside the paper's two, on the demo's model, against gradient ascent alone."""

from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel

from mamushi.io import paths
from mamushi.lm import device, loading, parameters
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.registry import plugin
from mamushi.unlearning.loop import unlearn
from tests.support.demo import CELL
from tests.support.models import PARTS
from tests.support.unlearning import EXECUTION, LOOP

UNLEARNED = PARTS | dict.fromkeys(("train_input_embedding", "train_output_head"), False)
ASCENT = ("neggrad_plus", {"beta_ng": 0.0, "stop_forget_loss": None, "learning_rate": 1e-4})
STEPS = 45


class Start:
    """The model of a cell that has seen all, and texts to forget, to retain and to measure on."""

    def __init__(self, folder: Path) -> None:
        at = {**CELL, "arm": "beta0"}
        names = (paths.MODEL_CARD, paths.TRAINED, paths.TOKENS, paths.EXAMPLES)
        self.card, self.trained, *files = (folder / name.format(**at) for name in names)
        self.texts = {
            (section, domain): read_tokens(*files, section, 48, domains=[domain])
            for section in ("inference", "evaluation")
            for domain in ("forget", "retain")
        }
        self.accelerator = device.accelerator("fp32")
        self.before = self.measured(self.opened())

    def opened(self) -> PreTrainedModel:
        found = loading.open_trained(self.card, self.trained, PARTS)
        parameters.freeze(found, UNLEARNED)
        return device.place(found, "fp32", self.accelerator.device)

    def measured(self, model: PreTrainedModel) -> dict[str, float]:
        """Mean NLL of a held-out token by domain, in nats."""

        def mean(texts: TokenSet) -> float:
            found = text_nll(model, texts, 4096, self.accelerator)
            return float(found.nll.sum() / found.tokens.sum())

        return {name: mean(self.texts["evaluation", name]) for name in ("forget", "retain")}

    def rises(self, kind: str, changes: dict[str, Any]) -> dict[str, float]:
        """What an unlearner adds to them."""
        model = self.opened()
        unlearn(
            model,
            *(self.texts["inference", name] for name in ("forget", "retain")),
            {
                "kind": kind,
                "settings": plugin("unlearner", kind).defaults | changes,
                "training": LOOP | {"batch_size": 8},
            },
            EXECUTION | {"micro_batch_size": 32, "checkpoint_seconds": 1e9},
            total=STEPS,
            seed=0,
            accelerator=self.accelerator,
        )
        return {name: nll - self.before[name] for name, nll in self.measured(model).items()}


@pytest.fixture(scope="module")
def start(demo: Path) -> Start:
    return Start(demo)


@pytest.fixture(scope="module")
def ascent(start: Start) -> dict[str, float]:
    return start.rises(*ASCENT)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("npo", {"learning_rate": 1e-3, "retain_weight": 20.0}),
        ("simnpo", {"learning_rate": 1e-3, "gamma": 14.0}),
        ("rmu", {"learning_rate": 1e-3, "alpha": 3.0, "steering": 3.0}),
    ],
)
def test_forget_texts_are_lost_and_retain_texts_held_better_than_by_ascent(
    start: Start, ascent: dict[str, float], kind: str, changes: dict[str, Any]
) -> None:
    """For the same loss of forget texts, a fifth less of retain texts at least."""
    rises = start.rises(kind, changes)
    assert min(rises["forget"], ascent["forget"]) > 0.15
    assert rises["retain"] / rises["forget"] < 0.8 * ascent["retain"] / ascent["forget"]
