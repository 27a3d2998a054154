"""Describe the out-of-fold scores of a run (paper, Appendix "Training Diagnostics")."""

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.verdict import auc_interval, auc_of_right_labels
from mamushi.io import schemas
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.crossfit import logit_midpoint
from mamushi.selection.metrics import auc, average_ranks

BINS = 15  # Of the reliability curve.


def diagnose(scores: RatioScores, texts: Dependence | None = None) -> dict[str, float | int | None]:
    """Return a row of the table ``diagnostics`` but for the run and the selector, None where a
    number is not defined. Intervals are as ``texts`` depend on each other. ``fisher`` is the
    paper's D_F = (mu1 - mu2) / sqrt((s1^2 + s2^2) / 2). ``ece`` is the mean over examples of
    |observed - predicted| of their bin of ``reliability``; by chance alone a perfect score has up
    to 0.4 sqrt(BINS / n)."""
    score, of_forget, texts = scores.score, scores.forget, texts or Dependence()
    forget, retain = score[of_forget], score[~of_forget]
    mean, sd = _moments(forget)
    quantiles = {"min": 0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1}
    # After the cell and the selector.
    row: dict[str, float | int | None] = {
        **dict.fromkeys(schemas.DIAGNOSTICS.schema.names[4:]),
        **{"n_forget": len(forget), "n_retain": len(retain), "forget_mean": mean, "forget_sd": sd},
        **{f"forget_{name}": float(np.quantile(forget, q)) for name, q in quantiles.items()},
        **{"forget_cov": sd / abs(mean) if mean else None, "groups": texts.groups},
        **{"ties": len(forget) - len(np.unique(forget)), "near_alike": texts.z},
    }
    if np.isnan(score).any():
        return row
    retain_mean, retain_sd = row["retain_mean"], row["retain_sd"] = _moments(retain)
    if spread := float(np.sqrt((sd**2 + retain_sd**2) / 2)):
        row["fisher"] = (mean - retain_mean) / spread
    low, high = texts.ends(*auc_interval(score, of_forget, groups=scores.groups))
    row |= {"auc": auc(score, of_forget), "auc_low": low, "auc_high": high}
    row["auc_high_mislabelled"] = None if high is None else auc_of_right_labels(high)
    predicted, observed, count = reliability(score, of_forget)
    row["ece"] = float((count * np.abs(observed - predicted)).sum() / count.sum())
    numbers = np.unique([] if scores.fold is None else scores.fold)
    folds = [(score[fold], of_forget[fold]) for fold in (scores.fold == i for i in numbers)]
    folds = [fold for fold in folds if 0 < fold[1].sum() < len(fold[1])]
    if areas := [auc(*fold) for fold in folds]:
        row |= {"auc_fold_mean": float(np.mean(areas)), "auc_fold_sd": float(np.std(areas))}
        row |= {"auc_fold_min": min(areas), "auc_fold_max": max(areas)}
        # Halfway between the class means: it moves when all logits of a fold do, which reorders the
        # pooled ranking and leaves the AUC of the fold alone.
        levels = [logit_midpoint(*fold) for fold in folds]
        row["fold_offset"] = float(max(levels) - min(levels))
    return row


def reliability(score: Doubles, forget: Mask) -> tuple[Doubles, Doubles, NDArray[np.int64]]:
    """Return the reliability curve of scores (n,) read as log p1(x)/p2(x): per bin the mean
    predicted probability of the forget domain, the observed share of it, and the examples.

    A classifier with balanced weights leaves the prior out of its logit; restored, it predicts

        P(forget | x) = 1 / (1 + exp(-(l(x) + log(n1 / n2)))).

    ``BINS`` hold equal numbers of examples, by the rank of the score; equal scores share one.
    """
    n, n1 = len(score), int(forget.sum())
    predicted = np.exp(-np.logaddexp(0.0, -(score + np.log(n1 / (n - n1)))))
    place = ((average_ranks(score) - 0.5) / n * BINS).astype(np.int64)
    _, place, counts = np.unique(place, return_inverse=True, return_counts=True)
    return np.bincount(place, predicted) / counts, np.bincount(place, forget) / counts, counts


def _moments(values: Doubles) -> tuple[float, float]:
    """Return mean and standard deviation, exactly 0 for constant values, whose mean rounds."""
    if values.min() == values.max():
        return float(values[0]), 0.0
    return float(values.mean()), float(values.std())
