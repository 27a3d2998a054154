"""What else influence could rank by: other numbers of targets, one block's weights, a second round,
and weights in the place of cuts.

    python -m studies.influence.further results jigsaw --seeds 0 --out bank

Its models lie in a bank beside those of ``bank.py``, which has trained beta 0 and gold, and the
judge's table of variants has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from mamushi.lm.tokens import TokenSet, mass, subset
from mamushi.selection.removals import budget_size
from mamushi.unlearning.trunk import starting_from
from mamushi_extras.influence.measuring import (
    Direction,
    InfluenceMeter,
    count_predicted,
    points_of,
)
from mamushi_extras.tokens.masks import highest
from studies.influence.bank import POINTS, Bank, Cell
from studies.influence.directions import InMemory, Meters, Variants

SECOND, WEIGHTS = "second", "weights"
TARGETS = {"targets16": 16, "targets350": 350}
BLOCK = "block"
ARMS = [
    f"{unit}-influence_{variant}-{beta}"
    for variant in (SECOND, *TARGETS, BLOCK)
    for unit, beta in (("texts", "0.50"), ("tokens", "0.10"))
] + [f"tokens-influence_{WEIGHTS}-0.10"]
Floats = NDArray[np.float32]


class BlockMeter(InfluenceMeter):
    """Along the gradient of the last trained block alone."""

    def accumulate(self) -> None:
        """Leave that gradient, and none of other weights."""
        super().accumulate()
        blocks = self.model.base_model.layers
        last = {id(parameter) for parameter in blocks[-1].parameters()}
        for parameter in self.trained:
            if id(parameter) not in last:
                parameter.grad = None


class Further(Cell):
    """A cell whose variants have a file of slopes each, and the second round one for each unit."""

    def _file(self, variant: str) -> Path:
        return self.folder / f"slopes_{variant}.safetensors"

    def _measured(self, variant: str) -> Variants:
        return Variants(self._file(variant), self.corpus.ranked)

    def _meter(self, variant: str) -> InfluenceMeter:
        bank = self.bank
        kept = InMemory(Path("unused"), "", np.zeros(count_predicted(bank.ranked)))
        kind = BlockMeter if variant == BLOCK else InfluenceMeter
        targets = bank.targets(self.seed, *([TARGETS[variant]] if variant in TARGETS else []))
        points = points_of(bank.steps, POINTS)
        read = (bank.model, bank.ranked, targets, Direction(1.0), points)
        return kind(*read, bank.accelerator, bank.training, kept)

    def _measure(
        self,
        variants: Mapping[str, str],
        texts: TokenSet,
        kept: NDArray[np.bool_] | None,
    ) -> None:
        """Train on the texts, and write what meters of ``variants`` measure, by their files."""
        meters = {file: Meters({"main": self._meter(name)}) for file, name in variants.items()}

        def updated(step: int, optimizer: torch.optim.Optimizer) -> None:
            for meter in meters.values():
                meter.updated(step, optimizer)

        with starting_from(self.bank.trunk, self.bank.model):
            self.bank.train(self.seed, texts, kept, updated)
        for file, meter in meters.items():
            meter.save(self._file(file))

    def prepare(self, name: str) -> None:
        """Measure what a variant ranks by, unless it has a file."""
        variant, bank = name.partition("_")[2], self.bank
        if variant in (*TARGETS, BLOCK) and not self._file(variant).is_file():
            self._measure({name: name for name in (*TARGETS, BLOCK)}, bank.ranked, None)
        if variant == SECOND and not self._file(f"{SECOND}_tokens").is_file():
            first = self.listed("texts-influence-0.25")
            kept = ~np.isin(bank.ranked.ids.astype(str), first)
            rows = np.flatnonzero(kept)
            self._measure({f"{SECOND}_texts": SECOND}, subset(bank.ranked, rows), kept)
            weighed = replace(bank.ranked, weights=self._weights(self._highest("", 0.05)))
            kept = mass(weighed) > 0
            texts = subset(weighed, np.flatnonzero(kept))
            self._measure({f"{SECOND}_tokens": SECOND}, texts, kept)

    def listed(self, arm: str) -> list[str]:
        """Return the ids of the texts of an arm."""
        _, name, beta = arm.split("-")
        variant = name.partition("_")[2]
        ids = self.corpus.ranked.ids[self.corpus.forget].astype(str)
        k = budget_size(float(beta), len(ids))
        if not variant:
            return super().listed(arm)
        if variant != SECOND:
            scores = self._measured(variant).of_texts("")[self.corpus.forget]
            return list(ids[np.argsort(-scores, kind="stable")[:k]])
        first = self.listed(f"texts-influence-{float(beta) / 2:.2f}")
        scores = self._measured(f"{SECOND}_texts").of_texts("")[self.corpus.forget]
        scores[np.isin(ids, first)] = np.inf
        return list(ids[np.argsort(-scores, kind="stable")[:k]])

    def mask(self, arm: str) -> None:
        """Retrain with the weights of an arm's tokens."""
        bank = self.bank
        texts = replace(bank.ranked, weights=self._weights(self._taken(arm)))
        kept = mass(texts) > 0
        bank.train(self.seed, subset(texts, np.flatnonzero(kept)), kept)

    def _taken(self, arm: str) -> Floats:
        """Return how much of each predicted token of the forget texts an arm takes, from 0 to 1."""
        _, name, beta = arm.split("-")
        variant, share = name.partition("_")[2], float(beta)
        if variant == SECOND:
            first = self._highest("", share / 2)
            second = self._scores(self._measured(f"{SECOND}_tokens"))
            return self._top(np.where(first > 0, np.inf, second), share)
        if variant != WEIGHTS:
            return self._highest(variant, share)
        scores = np.maximum(self._scores(self.slopes), 0)
        k = budget_size(share, len(scores))
        low, high = 0.0, float(k / scores[scores > 0].min())
        for _ in range(200):
            factor = (low + high) / 2
            low, high = (
                (factor, high) if np.minimum(factor * scores, 1).sum() < k else (low, factor)
            )
        return np.minimum(low * scores, 1).astype(np.float32)

    def _scores(self, slopes: Variants) -> NDArray[np.float64]:
        pairs = zip(slopes.of_tokens(""), self.corpus.forget, strict=True)
        return np.concatenate([values for values, here in pairs if here]).astype(np.float64)

    def _highest(self, variant: str, share: float) -> Floats:
        return self._top(self._scores(self._measured(variant) if variant else self.slopes), share)

    def _top(self, scores: NDArray[np.float64], share: float) -> Floats:
        """Return 1 for the highest share of the scores, else 0, as ``highest``."""
        return highest(scores.astype(np.float32), budget_size(share, len(scores))).astype(
            np.float32
        )

    def _weights(self, taken: Floats) -> Floats:
        """Return the weights of all tokens once so much of the forget texts' is taken."""
        ranked = self.corpus.ranked
        weights, at = np.ones(len(ranked.tokens), np.float32), 0
        for row in np.flatnonzero(self.corpus.forget):
            start, stop = ranked.offsets[row] + 1, ranked.offsets[row + 1]
            if stop > start:
                weights[start:stop] -= taken[at : at + stop - start]
                at += stop - start
        assert at == len(taken), (at, len(taken))
        return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    bank = Bank(args.results, args.dataset, args.out)
    for seed in args.seeds:
        cell = Further(bank, seed, choosing=True)
        for arm in args.arms:
            cell.make(arm)


if __name__ == "__main__":
    main()
