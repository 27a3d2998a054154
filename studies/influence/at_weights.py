"""What is lost where a model's training is not there: influence at its final weights alone.

    python -m studies.influence.at_weights results synthetic tiny-llama

Beta 0 is trained, and influence measured along it. Then it is taken as somebody's own model, by
Adam's moment from batches of the texts, with other texts as targets and cross-fitted. Rankings of
forget texts and of their tokens are compared; `passes` are tokens that went through the last block,
over those of the ranked texts, and CPU seconds are of everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm.batches import steps
from mamushi.lm.loading import open_placed
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import finetune
from mamushi.unlearning.trunk import Trunk, starting_from, write_trunk
from mamushi_extras.influence.at_weights import measure_at_weights, target_folds, targets_of
from mamushi_extras.influence.measuring import (
    Direction,
    InfluenceMeter,
    Kept,
    count_predicted,
    draw_targets,
    points_of,
)
from studies.lib.cells import EXECUTION, Cell, arguments
from studies.lib.report import Report

TARGETS, POINTS = 200, 3
MOST, CHOSEN, FEWER = 128, 32, 8
"""Batches of the moment."""
SHARES = {"texts": 0.5, "tokens": 0.1}

Doubles = NDArray[np.float64]


class Study:
    """The texts and the model of a cell, which is trained once."""

    def __init__(self, cell: Cell, folder: Path, report: Report) -> None:
        self.cell, self.folder, self.report = cell, folder, report
        self.training = cell.training | EXECUTION
        self.accelerator = cell.accelerator()
        self.texts, self.contamination = cell.ranked, cell.texts("contamination")
        self.targets = {
            domain: draw_targets(self.contamination, domain, TARGETS, cell.seed)
            for domain in (FORGET, RETAIN)
        }
        precision = self.training["precision"]
        self.model = open_placed(cell.base, None, cell.training, precision, self.accelerator)
        self.read = 0
        last = decoder_blocks(self.model)[1][-1]
        last.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, module: Any, inputs: Any, named: Any) -> None:
        states = inputs[0] if inputs else named["hidden_states"]
        self.read += states.shape[0] * states.shape[1]

    def trunk(self) -> AbstractContextManager[object]:
        """Compute once what lies below the trained blocks, where nothing moves there."""
        if self.training["train_input_embedding"] or self.training["train_output_head"]:
            return nullcontext()
        texts, blocks = [self.texts, *self.targets.values()], self.training["trained_blocks"]
        path, tokens = self.folder / "trunk", self.training["batch_tokens"]
        write_trunk(path, self.model, texts, blocks, tokens, self.accelerator, {})
        return starting_from(Trunk(path), self.model)

    def measured(self, name: str, measure: Callable[[Kept], None]) -> Doubles:
        """Return what is measured of each token, and report what it takes."""
        kept = Kept(self.folder / name, name, np.zeros(count_predicted(self.texts)))
        self.read, began = 0, time.process_time()
        measure(kept)
        self.report.value(f"{name}_cpu_seconds", time.process_time() - began)
        self.report.value(f"{name}_passes", self.read / float(self.texts.lengths.sum()))
        return kept.total

    def along(self, kept: Kept) -> None:
        """Train beta 0, and measure at its points."""
        training = self.training
        total = steps(len(self.texts), int(training["batch_size"]), float(training["epochs"]))
        direction, points = Direction(1.0), points_of(total, POINTS)
        read = (self.model, self.texts, self.targets, direction, points)
        meter = InfluenceMeter(*read, self.accelerator, training, kept)
        finetune(
            self.model,
            self.texts,
            training,
            total=total,
            seed=self.cell.seed,
            accelerator=self.accelerator,
            updated=meter.updated,
        )

    def at_weights(self, kept: Kept, batches: int, candidates: TokenSet, seed: int) -> None:
        """Measure at the weights of now."""
        folds = target_folds(self.texts, None, candidates, seed)
        drawn = (candidates, TARGETS, self.cell.seed)
        targets = {
            fold: targets_of(self.texts, folds, fold, *drawn) for fold in sorted({*folds.tolist()})
        }
        training = (self.training, seed, self.accelerator, kept)
        measure_at_weights(
            self.model, self.texts, folds, targets, Direction(1.0), batches, *training
        )

    def compare(self, name: str, values: Doubles, reference: Doubles) -> None:
        """Report rank correlation over forget texts and their tokens, and the share of the first
        that both have."""
        counts = np.maximum(self.texts.lengths - 1, 0)
        of_tokens = np.repeat(self.cell.forget, counts)
        ends = np.cumsum(counts)[:-1]
        pairs: dict[str, list[Doubles]] = {"texts": [], "tokens": []}
        for array in (values, reference):
            sums = np.array([part.sum() for part in np.split(array, ends)])
            pairs["texts"].append(sums[self.cell.forget])
            pairs["tokens"].append(array[of_tokens])
        for unit, (scores, compared) in pairs.items():
            most = int(SHARES[unit] * len(scores))
            first, second = ({*np.argsort(-x)[:most].tolist()} for x in (scores, compared))
            self.report.value(f"{name}_{unit}", float(spearmanr(scores, compared)[0]))
            self.report.value(f"{name}_{unit}_overlap", len(first & second) / most)


def main() -> None:
    args = arguments(__doc__).parse_args()
    report = Report(f"at_weights-{args.dataset}", threads=torch.get_num_threads())
    with TemporaryDirectory() as folder:
        study = Study(Cell(args.run, args.dataset, args.model, args.seed), Path(folder), report)
        report.value("texts", len(study.texts))
        with study.trunk():
            compare_all(study)
    report.write(args.results)


def compare_all(study: Study) -> None:
    """Measure along the training, and then at its end in every way."""
    nothing = subset(study.contamination, np.array([], np.int64))
    seed, along = study.cell.seed, study.measured("along", study.along)
    variants = {
        "most": (MOST, study.contamination, seed),
        "chosen": (CHOSEN, study.contamination, seed),
        "halves": (CHOSEN, nothing, seed),
        "fewer": (FEWER, study.contamination, seed),
        "other_halves": (CHOSEN, nothing, seed + 1),
    }
    values: dict[str, Doubles] = {}
    for name, how_measured in variants.items():
        values[name] = study.measured(
            name, lambda kept, how_measured=how_measured: study.at_weights(kept, *how_measured)
        )
        study.compare(f"{name}_with_along", values[name], along)
        if name != "most":
            study.compare(f"{name}_with_most", values[name], values["most"])
    study.compare("halves_with_other_halves", values["halves"], values["other_halves"])


if __name__ == "__main__":
    main()
