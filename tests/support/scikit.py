"""scikit-learn's MLP under the paper's rule of stopping, and ours with the draws of scikit-learn's.

Two networks of one recipe differ by their seeds more than by anything else. To tell what is due to
the engine, ours is given the very draws that ``MLPClassifier`` makes from its seed: the weights it
starts from, the part that is held out, and the order of the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.utils import shuffle

from mamushi.selection import mlp
from mamushi.selection.crossfit import Task
from mamushi.selection.folds import balanced_weights
from mamushi.selection.mlp_sklearn import raw_logits


class ByLoss(MLPClassifier):
    """Stops early on the weighted cross-entropy of what is held out, and not on its accuracy."""

    def _score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        z = raw_logits(self, X)
        loss = np.logaddexp(0, z) - np.asarray(y, dtype=np.float64) * z
        return -float(np.average(loss, weights=sample_weight))


@contextmanager
def replayed() -> Iterator[None]:
    """Within the block, ``mlp.train_network`` draws the numbers of ``MLPClassifier`` by a seed."""
    with patch.object(mlp, "Split", _Replayed):
        yield


class _Replayed(mlp.Split):
    """All draws of a fit, in the order in which ``MLPClassifier`` makes them."""

    def __init__(self, task: Task, settings: Mapping[str, Any]) -> None:
        forget = task.forget[task.train]
        random = np.random.RandomState(task.seed)
        widths = [task.embeddings.shape[1], *settings["hidden"], 1]
        self.rng = _Weights(random, widths)  # type: ignore[assignment]
        self.rows, self.forget = task.train, forget.astype(np.float32)
        self.weights = balanced_weights(forget).astype(np.float32)
        self.fitted, self.held = train_test_split(
            np.arange(len(forget)),
            random_state=random,
            test_size=settings["validation"],
            stratify=forget,
        )
        self.size = min(settings["batch_size"], len(self.fitted))
        self._random, self._order = random, np.arange(len(self.fitted))

    def epoch(self) -> list[mlp._Places]:
        self._order = shuffle(self._order, random_state=self._random)
        order = self.fitted[self._order]
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]


class _Weights:
    """Gives the first weights and biases of all layers, drawn before anything else is."""

    def __init__(self, random: np.random.RandomState, widths: list[int]) -> None:
        self._drawn: list[NDArray[np.float64]] = []
        for inputs, outputs in pairwise(widths):
            bound = np.sqrt(6.0 / (inputs + outputs))
            self._drawn.append(random.uniform(-bound, bound, (inputs, outputs)).T)
            self._drawn.append(random.uniform(-bound, bound, outputs))

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        drawn = self._drawn.pop(0)
        assert drawn.shape == tuple(shape)
        return drawn
