"""The paper's selector: the cross-fitted logit of an MLP, an estimate of log p1(x)/p2(x).

Paper, Section 4 and Appendix "Classifier Details". By Lemma 1, the logit that minimises the binary
cross-entropy is log p1(x)/p2(x) + log pi1/pi2; with balanced class weights the second term is zero.
"""

from functools import partial
from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS, cross_fit_together
from mamushi.selection.pool import Pool, Scored

SETTINGS: dict[str, Any] = {
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "hidden": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "default": [1024, 512, 256],
        "description": "Widths of the hidden layers, with ReLU after each.",
    },
    "learning_rate": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.001,
        "description": "Step size of Adam.",
    },
    "batch_size": {
        "type": "integer",
        "minimum": 1,
        "default": 4096,
        "description": "Examples per step; clipped to the training examples of a fold.",
    },
    "epochs": {
        "type": "integer",
        "minimum": 1,
        "default": 50,
        "description": "Most passes over the training examples of a fold.",
    },
    "patience": {
        "type": "integer",
        "minimum": 0,
        "default": 5,
        "description": "Training stops after more epochs in a row than this without improvement.",
    },
    "tolerance": {
        "type": "number",
        "minimum": 0,
        "default": 0.0001,
        "description": "A held-out loss that falls by less counts as no improvement.",
    },
    "validation": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "Share of a fold's training examples held out for early stopping.",
    },
    "alpha": {
        "type": "number",
        "minimum": 0,
        "default": 0.1,
        "description": "L2 penalty on the weights in scikit-learn's meaning: the gradient gets "
        "alpha W divided by the weight of the batch.",
    },
    "precision": {
        "enum": ["auto", "fp32", "bf16"],
        "default": "auto",
        "description": "Products of the training in bfloat16 from float32 weights (auto: where the "
        "hardware multiplies in it); the logits are float32 always.",
    },
    "seeds_averaged": {
        "type": "integer",
        "minimum": 1,
        "default": 40,
        "description": "Networks whose held-out logits are averaged for each text, each with folds "
        "of its own; 1 as in the paper. Two runs with 40 agree on nine tenths of the top tenth, "
        "with 1 on half of it to four fifths.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, with AUC, epochs and offset of every fold in ``details``.

    Raises ``UserError`` when a domain has too few examples for the folds.
    """
    from mamushi.selection.mlp import estimate_mlp

    estimate = partial(estimate_mlp, settings=settings)
    folds, networks, sample = (settings[key] for key in ("folds", "seeds_averaged", "fit_sample"))
    found = cross_fit_together(pool, folds, seed, estimate, "mamushi", networks, fit_sample=sample)
    used = found.details["per_fold"][0]["fits"][0]["precision"]
    found.details["resolved"] = {"precision": used}
    return found
