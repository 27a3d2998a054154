"""The texts and models of one dataset, model and seed of a finished run, for benchmarks on them."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.config.sections import Training
from mamushi.io.files import read_json
from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm import device, loading
from mamushi.lm.loading import open_model
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet, read_tokens, subset
from mamushi.lm.training import minimize_nll
from studies.lib import report

Doubles = NDArray[np.float64]

EXECUTION = {"batch_tokens": 16384, "micro_batch_size": 32, "checkpoint_seconds": 1e9}


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """What names a cell on the command line, and where results go."""
    parser = report.arguments(doc)
    parser.add_argument("run", type=Path, help="the folder of results of a run")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seed", type=int, default=0)
    return parser


class Cell:
    """The texts and models of one dataset, model and seed of a run."""

    def __init__(self, results: Path, dataset: str, model: str, seed: int) -> None:
        self.folder = results / "runs" / dataset / model / f"seed{seed}"
        self.base = results / "base" / model / "card.json"
        card = read_json(self.folder / "arms" / "contaminated" / "card.json")
        self.training = Training(**card["settings"]["training"])
        self.seed = seed
        self.files = [results / "data" / dataset / name for name in ("tokens", "examples.parquet")]
        self.files[0] /= f"{model}.parquet"
        self.ranked = self.texts("inference")
        self.forget = self.ranked.domains == FORGET

    def texts(self, section: str, *domains: str) -> TokenSet:
        length = self.training.max_length
        return read_tokens(*self.files, section, length, domains=domains or (FORGET, RETAIN))

    def accelerator(self, seed: int | None = None) -> Accelerator:
        device.seed_torch(self.seed if seed is None else seed)
        return device.accelerator(self.training.precision)


def tuned(
    cell: Cell,
    texts: TokenSet,
    seed: int,
    accelerator: Accelerator,
    kept: NDArray[np.bool_] | None = None,
) -> PreTrainedModel:
    """The base model, fine-tuned on the texts as the models of the cell are.

    With ``kept`` (all texts,), those texts of all, in aligned steps: models of a seed differ in
    their texts alone, neither in order nor in steps.
    """
    training, examples = cell.training, len(texts)
    if kept is not None:
        texts = subset(texts, np.flatnonzero(kept))
        training = training.model_copy(update={"steps": "aligned"})
    model = open_model(cell.base)
    freeze(model, training)
    loading.place_model(model, training.precision, accelerator.device)
    how: dict[str, Any] = {"micro_batch_size": EXECUTION["micro_batch_size"], "examples": examples}
    minimize_nll(model, texts, training, **how, seed=seed, accelerator=accelerator, remaining=kept)
    return model
