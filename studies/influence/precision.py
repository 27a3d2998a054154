"""How far slopes in bf16 are from those in fp32, by the length of the step.

    python -m studies.influence.precision results jigsaw smollm2_frozen

At one point of a training of SmolLM2 in bf16, on 96 texts: slopes of all tokens along one
direction, over steps of several lengths. They are compared with those in fp32 over the shortest.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from mamushi.io.domains import FORGET, RETAIN
from mamushi.lm import device
from mamushi.lm.loading import open_placed
from mamushi.lm.tokens import subset
from mamushi.lm.training import finetune
from mamushi_extras.influence.measuring import (
    Direction,
    InfluenceMeter,
    Kept,
    draw_targets,
    precondition,
)
from studies.lib.cells import EXECUTION, Cell, arguments
from studies.lib.report import Report

TEXTS = 48  # of each domain, and as many targets
STEPS = 6
LENGTHS = {"no": (3e-4, 1e-3, 3e-3), "bf16": (1e-3, 3e-3, 1e-2)}
NAMES = {"no": "fp32", "bf16": "bf16"}


class AllLengths(InfluenceMeter):
    """Measures at one point over every length."""

    report: Report

    def updated(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Print how far all slopes are from those in fp32 over the shortest step."""
        if step != STEPS:
            return
        self.model.eval()
        self.accumulate()
        precondition(optimizer)
        # In fp32 all of it: the frozen weights are those of bf16.
        self.model.float()
        first = None
        for precision, lengths in LENGTHS.items():
            self.accelerator = device.accelerator("bf16" if precision == "bf16" else "fp32")
            for eps in lengths:
                self.eps, began = eps, time.process_time()
                slopes, name = self.slopes(), f"{NAMES[precision]}_{eps:g}"
                self.report.value(f"{name}_cpu_seconds", time.process_time() - began)
                first = slopes if first is None else first
                apart = np.linalg.norm(slopes - first) / np.linalg.norm(first)
                self.report.value(f"{name}_apart", float(apart))
                self.report.value(f"{name}_correlation", float(np.corrcoef(slopes, first)[0, 1]))
        optimizer.zero_grad()


def main() -> None:
    args = arguments(__doc__).parse_args()
    cell = Cell(args.run, args.dataset, args.model, args.seed)
    accelerator, settings = cell.accelerator(), cell.training | EXECUTION
    rows = [np.flatnonzero(cell.ranked.domains == domain)[:TEXTS] for domain in (FORGET, RETAIN)]
    texts = subset(cell.ranked, np.sort(np.concatenate(rows)))
    contamination = cell.texts("contamination")
    targets = {
        domain: draw_targets(contamination, domain, TEXTS, cell.seed) for domain in (FORGET, RETAIN)
    }
    model = open_placed(cell.base, None, cell.training, settings["precision"], accelerator)
    with TemporaryDirectory() as folder:
        nothing = Kept(Path(folder) / "points", "", np.zeros(int((texts.lengths - 1).sum())))
        direction = Direction(1.0)
        meter = AllLengths(
            model, texts, targets, direction, [STEPS], accelerator, settings, nothing
        )
        meter.report = Report(f"precision-{args.dataset}", threads=torch.get_num_threads())
        finetune(
            model,
            texts,
            settings,
            total=STEPS,
            seed=cell.seed,
            accelerator=accelerator,
            updated=meter.updated,
        )
        meter.report.write(args.results)


if __name__ == "__main__":
    main()
