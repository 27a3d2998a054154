"""The paper's selector: the cross-fitted logit of an MLP, an estimate of log p1(x)/p2(x).

Paper, Section 4 and Appendix "Classifier Details". By Lemma 1, the logit that minimises the binary
cross-entropy is log p1(x)/p2(x) + log pi1/pi2; with balanced class weights the second term is zero.
"""

from typing import Any, Literal

from mamushi.config.kinds import Count, Fraction, Natural, NotNegative, Positive, key
from mamushi.config.sections import CrossFitted
from mamushi.selection.pool import Pool, Scored


class Settings(CrossFitted):
    """Settings of the MLP and its training."""

    estimator: Literal["torch", "sklearn"] = key(
        "torch",
        "torch stops by the held-out loss, on a GPU if there is one; sklearn, the paper's, by the "
        "held-out accuracy, on a CPU in float32.",
    )
    hidden: list[Count] = key([1024, 512, 256], "Widths of the hidden layers, of ReLU.")
    learning_rate: Positive = key(0.001, "Step size of Adam.")
    batch_size: Count = key(4096, "Examples per step; clipped to the training examples of a fold.")
    epochs: Count = key(50, "Most passes over the training examples of a fold.")
    patience: Natural = key(5, "Training stops after more epochs in a row without improvement.")
    tolerance: NotNegative = key(0.0001, "A held-out loss that falls by less is no improvement.")
    validation: Fraction = key(0.1, "Share of a fold's training examples for early stopping.")
    alpha: NotNegative = key(
        0.1, "L2 penalty: the gradient gets alpha W over the batch's weight, as scikit-learn's."
    )
    precision: Literal["auto", "fp32", "bf16"] = key(
        "auto", "Of products in training; auto: bf16 where the hardware multiplies in it."
    )
    seeds_averaged: Count = key(
        40,
        "Networks whose held-out logits are averaged; 1 as in the paper. Two runs with 40 agree on "
        "nine tenths of the top tenth, with 1 on half of it to four fifths.",
    )


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` has AUC, epochs and offset of each fold."""
    from functools import partial

    from mamushi.selection.crossfit import cross_fit

    if settings["estimator"] == "sklearn":
        from mamushi.selection.mlp_sklearn import fit_classifiers as estimate_mlp
    else:
        from mamushi.selection.mlp import estimate_mlp
    estimate = partial(estimate_mlp, settings=settings)
    return cross_fit(pool, settings, seed, estimate, "mamushi", together=True)
