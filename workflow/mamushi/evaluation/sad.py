"""The Sum of Absolute Distances (SAD) to the gold-standard model, and the area under its curve.

Paper, equation "sad", of the model retrained after removing a share beta of the forget set:
SAD_beta = |PPL_(beta,forget) - PPL_(1,forget)| + |PPL_(beta,retain) - PPL_(1,retain)|

It is a distance, no loss. Of two models that are below gold in both domains, gold cancels:
SAD_a - SAD_b = -(change of PPL_forget + change of PPL_retain), so that the one that predicts retain
texts better is charged for it.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def sad(
    ppl_forget: npt.ArrayLike,
    ppl_retain: npt.ArrayLike,
    gold_ppl_forget: npt.ArrayLike,
    gold_ppl_retain: npt.ArrayLike,
) -> Floats:
    """Return SAD in units of perplexity; arguments broadcast. Of mean NLLs it is in nats per token,
    where one per cent of perplexity counts the same in both domains."""
    forget = np.abs(np.subtract(ppl_forget, gold_ppl_forget))
    retain = np.abs(np.subtract(ppl_retain, gold_ppl_retain))
    return np.asarray(forget + retain, dtype=np.float64)


def area(beta: npt.ArrayLike, height: npt.ArrayLike) -> float:
    """Return the area under a curve by the trapezoid rule over its width: the mean height.

    ``beta`` must increase. A curve of one point has its own height.
    """
    x = np.asarray(beta, dtype=np.float64)
    y = np.asarray(height, dtype=np.float64)
    return float(y[0]) if len(x) == 1 else float(np.trapezoid(y, x) / (x[-1] - x[0]))


def standard_error(values: npt.ArrayLike) -> float:
    """Return the standard error of a mean over seeds, with n - 1; NaN for one seed."""
    by_seed = np.asarray(values, dtype=np.float64)
    n = len(by_seed)
    return float(np.std(by_seed, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
