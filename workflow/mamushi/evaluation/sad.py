r"""The Sum of Absolute Distances (SAD) to the gold-standard model, and the area under its curve.

For the model that was retrained after removing a share :math:`\beta` of the forget set (paper,
equation "sad")::

    SAD_beta = |PPL_(beta,forget) - PPL_(1,forget)| + |PPL_(beta,retain) - PPL_(1,retain)|

The gold-standard model saw the retain set alone: :math:`\beta = 1`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def sad(
    ppl_forget: npt.ArrayLike,
    ppl_retain: npt.ArrayLike,
    gold_ppl_forget: npt.ArrayLike,
    gold_ppl_retain: npt.ArrayLike,
) -> Floats:
    """SAD in units of perplexity; arguments broadcast. 0 means as good as the gold standard."""
    forget = np.abs(np.subtract(ppl_forget, gold_ppl_forget))
    retain = np.abs(np.subtract(ppl_retain, gold_ppl_retain))
    return np.asarray(forget + retain, dtype=np.float64)


def log_sad(
    nll_forget: npt.ArrayLike,
    nll_retain: npt.ArrayLike,
    gold_nll_forget: npt.ArrayLike,
    gold_nll_retain: npt.ArrayLike,
) -> Floats:
    """SAD of log perplexities, in nats per token; arguments are mean NLLs and broadcast.

    Not in the paper. SAD weighs a domain by its level of perplexity, so the forget domain, where
    the gold-standard model is bad, decides it; here one per cent counts the same in both.
    """
    return sad(nll_forget, nll_retain, gold_nll_forget, gold_nll_retain)


def area(beta: npt.ArrayLike, height: npt.ArrayLike) -> float:
    """Area under a curve by the trapezoid rule, divided by its width: the mean height.

    Over [0, 1] that is the area itself; over a part of it the division keeps areas comparable.
    ``beta`` must increase. A curve of one point has its own height.
    """
    x = np.asarray(beta, dtype=np.float64)
    y = np.asarray(height, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0 or np.any(np.diff(x) <= 0):
        raise ValueError("beta and height must be vectors of one length, and beta must increase")
    return float(y[0]) if len(x) == 1 else float(np.trapezoid(y, x) / (x[-1] - x[0]))


def standard_error(values: npt.ArrayLike) -> float:
    """Standard error of the mean over seeds: sd / sqrt(n), with n - 1 in the sd.

    NaN for a single seed, whose error is unknown and not zero.
    """
    found = np.asarray(values, dtype=np.float64)
    n = len(found)
    return float(np.std(found, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
