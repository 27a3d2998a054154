"""The paper's selector: the cross-fitted logit of an MLP, an estimate of log p1(x)/p2(x).

Paper, Section 4 and Appendix "Classifier Details". By Lemma 1, the logit that minimises the binary
cross-entropy is log p1(x)/p2(x) + log pi1/pi2; with balanced class weights the second term is zero.
"""

from typing import Any, Literal

from mamushi.config.kinds import Count, Fraction, Natural, NotNegative, Positive, listed
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.settings import CrossFitted


class Settings(CrossFitted):
    """Settings of the MLP and its training."""

    #: torch stops by the held-out loss, on a GPU if there is one; sklearn is the paper's own,
    #: scikit-learn's MLPClassifier, which stops by the held-out accuracy, on a CPU in float32.
    estimator: Literal["torch", "sklearn"] = "torch"
    #: Widths of the hidden layers, with ReLU after each.
    hidden: list[Count] = listed(1024, 512, 256)
    learning_rate: Positive = 0.001  #: Step size of Adam.
    batch_size: Count = 4096  #: Examples per step; clipped to the training examples of a fold.
    epochs: Count = 50  #: Most passes over the training examples of a fold.
    #: Training stops after more epochs in a row than this without improvement.
    patience: Natural = 5
    #: A held-out loss that falls by less counts as no improvement.
    tolerance: NotNegative = 0.0001
    validation: Fraction = 0.1  #: Share of a fold's training examples held out for early stopping.
    #: L2 penalty on the weights in scikit-learn's meaning: the gradient gets alpha W divided by the
    #: weight of the batch.
    alpha: NotNegative = 0.1
    #: Products of the training in bfloat16 from float32 weights (auto: where the hardware
    #: multiplies in it); the logits are float32 always.
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    #: Networks whose held-out logits are averaged for each text, each with folds of its own; 1 as
    #: in the paper. Two runs with 40 agree on nine tenths of the top tenth, with 1 on half of it to
    #: four fifths.
    seeds_averaged: Count = 40


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` has AUC, epochs and offset of each fold."""
    from functools import partial

    from mamushi.selection.crossfit import cross_fit_together
    from mamushi.selection.mlp import estimate_mlp

    estimate = partial(estimate_mlp, settings=settings)
    folds, networks, sample = (settings[key] for key in ("folds", "seeds_averaged", "fit_sample"))
    scored = cross_fit_together(pool, folds, seed, estimate, "mamushi", networks, fit_sample=sample)
    used = scored.details["per_fold"][0]["fits"][0]["precision"]
    scored.details["resolved"] = {"precision": used}
    return scored
