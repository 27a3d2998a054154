"""Influence along several directions in one training: what the bank chooses among."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch import Tensor

from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm import sharding
from mamushi.lm.batches import model_batches
from mamushi.lm.head import HeadEdit, lay_over, logits_of
from mamushi.lm.loss import head_inputs
from mamushi.lm.tokens import TokenSet
from mamushi_extras.influence.at_weights import second_moment
from mamushi_extras.influence.measuring import (
    Direction,
    InfluenceMeter,
    Kept,
    count_predicted,
    divide,
    split_by_text,
)

if TYPE_CHECKING:
    from studies.influence.bank import Bank

Doubles = NDArray[np.float64]
ROUNDS, PRIOR = 60, 300.0
"""Of the raking, and how many words the model's own mean prediction counts for."""
FEWER, BATCHES = 50, 36
"""Targets a domain in the place of 200, and batches of which a second moment is made."""
MIXES: dict[str, dict[str, float]] = {
    "": {"forget": 1.0, "retain": -1.0},
    "less0": {"forget": 1.0},
    "mean": {"forget": 1.0, "retain": -1.0},
    "deep": {"forget": 1.0, "deep": 1.0, "retain": -1.0},
    "last": {"forget": 1.0, "retain": -1.0},
    "few": {"forget50": 1.0, "retain50": -1.0},
    "own": {"forget_own": 1.0, "retain_own": -1.0},
}
"""By variant, the directions that it adds up; ``last`` is of the last point alone, as is ``own``,
by a second moment from batches of the texts."""
LAST = ("last", "own")


class Variants:
    """The slopes of a file, by direction and step, as scores of texts and tokens."""

    def __init__(self, path: Path, texts: TokenSet) -> None:
        self._values, self._texts = load_file(path), texts

    def flat(self, variant: str) -> Doubles:
        """Return the influence of each predicted token, text after text, by a variant."""
        directions = {name.split("@")[0] for name in self._values}
        mix = {"main": 1.0} if directions == {"main"} else MIXES[variant]
        points = sorted({int(name.split("@")[1]) for name in self._values})
        total = np.zeros(count_predicted(self._texts))
        for name, weight in mix.items():
            for point in points[-1:] if variant in LAST else points:
                total += weight * self._values[f"{name}@{point}"]
        return total

    def of_tokens(self, variant: str) -> list[NDArray[np.float32]]:
        """Return the influence of each text's tokens, all but its first."""
        return split_by_text(self.flat(variant), self._texts)

    def of_texts(self, variant: str) -> Doubles:
        """Return the influence of each text: the sum over its tokens, or their mean."""
        tokens = self.of_tokens(variant)
        sums = np.array([values.sum(dtype=np.float64) for values in tokens])
        return sums / [max(len(values), 1) for values in tokens] if variant == "mean" else sums


class InMemory(Kept):
    """What a meter measures, without a file."""

    def add(self, step: int, values: Doubles) -> None:
        """Add what was measured after ``step``."""
        self.total = self.total + values
        self.steps = [*self.steps, step]


class Meters:
    """Meters of one training, by the name of their direction."""

    def __init__(self, meters: Mapping[str, InfluenceMeter]) -> None:
        self._meters, self._values = meters, dict[str, Doubles]()

    def updated(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Measure every direction after ``step``, where it is one of its points."""
        for name, meter in self._meters.items():
            before = meter.kept.total
            meter.updated(step, optimizer)
            if meter.kept.total is not before:
                self._values[f"{name}@{step}"] = meter.kept.total - before

    def only(self, *names: str) -> Meters:
        """Return the meters of these directions."""
        return Meters({name: self._meters[name] for name in names})

    def save(self, path: Path) -> None:
        """Write what was measured."""
        save_file(self._values, path)


class DeepMeter(InfluenceMeter):
    """Along the gradient of the ``raked`` texts' NLL once word frequencies are taken out.

    A constant on the logits, fitted at each point, makes the mean prediction that of their words.
    """

    raked: TokenSet

    def accumulate(self) -> None:
        """Leave the gradient of the NLL with the constant added."""
        head = self.model.get_output_embeddings()
        name = next(name for name, module in self.model.named_modules() if module is head)
        lay_over(self.model, HeadEdit({"bias": self._bias()}, strength=1.0))
        try:
            super().accumulate()
        finally:
            self.model.set_submodule(name, head)

    @torch.no_grad()
    def _bias(self) -> Tensor:
        head, texts = self.model.get_output_embeddings(), self.raked
        behind = np.ones(len(texts.tokens), dtype=bool)
        behind[texts.offsets[:-1][texts.lengths > 0]] = False
        columns = torch.from_numpy(np.unique(texts.tokens[behind]).astype(np.int64))
        logits, targets = [], []
        batching = (self.batch_tokens, self.accelerator, "raking")
        for _, batch, _ in model_batches(self.model, texts, *batching):
            with self.accelerator.autocast():
                hidden = head_inputs(self.model, batch)
                logits.append(logits_of(head, None, hidden, columns).float())
            targets.append(torch.searchsorted(columns, batch.targets))
        table = torch.cat(logits).softmax(1)
        counts = torch.bincount(torch.cat(targets), minlength=len(columns)).double()
        wanted_mean = counts + PRIOR * table.double().mean(0)
        wanted_mean /= wanted_mean.sum()
        bias = torch.zeros(len(columns), dtype=torch.float64)
        for _ in range(ROUNDS):
            weights = bias.exp().float()
            mean = (weights * (table.t() @ (1 / (table @ weights)))).double() / len(table)
            bias += wanted_mean.log() - mean.clamp(min=1e-30).log()
        constant = torch.zeros(head.weight.shape[0])
        constant[columns] = (bias - bias.mean()).float()
        return constant


class MomentMeter(InfluenceMeter):
    """At the weights of its point alone, by a second moment from batches of the texts."""

    seed: int
    training: Mapping[str, Any]

    def updated(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Measure after ``step`` if it is the point."""
        if step not in self.points:
            return
        mode = self.model.training
        self.model.eval()
        read = (self.texts, BATCHES, self.training, self.seed, self.accelerator)
        moment = second_moment(self.model, *read)
        self.accumulate()
        for second, parameter in zip(moment, self.trained, strict=True):
            if parameter.grad is not None:
                divide(sharding.local(parameter.grad), second, float(self.training["epsilon"]))
        self.kept.add(step, float(self.training["learning_rate"]) * self.slopes())
        optimizer.zero_grad(set_to_none=True)
        self.model.train(mode)


def meters_of(
    bank: Bank, seed: int, points: Sequence[int], training: Mapping[str, Any], *, choosing: bool
) -> Meters:
    """Return the meters of a seed: of the program's direction, or of all that are chosen among."""

    def options(less: float, at: Sequence[int]) -> tuple[Any, ...]:
        kept = InMemory(Path("unused"), "", np.zeros(count_predicted(bank.ranked)))
        return Direction(less), at, bank.accelerator, training, kept

    targets, fewer = bank.targets(seed), bank.targets(seed, FEWER)
    read = (bank.model, bank.ranked)
    if not choosing:
        return Meters({"main": InfluenceMeter(*read, targets, *options(1.0, points))})
    meters: dict[str, InfluenceMeter] = {}
    for domain in (FORGET, RETAIN):
        alone = {FORGET: targets[domain]}
        meters[domain] = InfluenceMeter(*read, alone, *options(0.0, points))
        of_fewer = {FORGET: fewer[domain]}
        meters[f"{domain}50"] = InfluenceMeter(*read, of_fewer, *options(0.0, points))
        by_moment = MomentMeter(*read, alone, *options(0.0, points[-1:]))
        by_moment.seed, by_moment.training = 10_000 + seed, training
        meters[f"{domain}_own"] = by_moment
    deep = DeepMeter(*read, {FORGET: targets[FORGET]}, *options(0.0, points))
    deep.raked = targets[FORGET]
    meters["deep"] = deep
    return Meters(meters)
