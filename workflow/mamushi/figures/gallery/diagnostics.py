"""Training diagnostics of a score: its distribution by domain, ROC, calibration, sorted scores."""

from pathlib import Path
from typing import Any

OF = "cell"
READS = ["scores"]


def draw(grid: dict[str, Any], scores: Path) -> Any:
    """Draw four panels of the scores that ``grid`` names (``dataset, model, seed, selector``)."""
    import numpy as np
    import pandas as pd
    import seaborn as sns
    from sklearn.metrics import roc_curve

    from mamushi.evidence import diagnostics
    from mamushi.evidence.calibration import read_scores
    from mamushi.figures.style import TONES, draw_line_panels
    from mamushi.io.domains import DOMAINS
    from mamushi.io.names import label

    read = read_scores(scores)
    numbers, note = diagnostics.diagnose(read), f": {label(grid['selector'])}"
    rows = pd.DataFrame({"score": read.score, "domain": np.where(read.forget, *DOMAINS)})
    means = rows.groupby("domain").score.mean()
    forget = np.sort(read.score[read.forget])[::-1]
    share = (np.arange(len(forget)) + 0.5) / len(forget)
    predicted, observed, _ = diagnostics.reliability(read.score, read.forget)
    even = ("_reference", [0, 1], [0, 1])
    drawings: dict[str, list[tuple[Any, ...]]] = {
        "(a) $D_F$ = {fisher:.2f}": [(name, [x, x], [0, 0.1]) for name, x in means.items()],
        "(b) AUC {auc:.3f}": [even, ("_both", *roc_curve(read.forget, read.score)[:2])],
        "(c) ECE = {ece:.3f}": [even, ("_both", predicted, observed)],
        "(d) mean {forget_mean:.2f}, sd {forget_sd:.2f}, ties {ties} of {n_forget:,}": [
            ("forget", share, forget)
        ],
    }
    titled = {title.format(**numbers): panel for title, panel in drawings.items()}
    panels = draw_line_panels(grid, titled, note)
    first, second, third, fourth = panels.values()
    look = {"hue": "domain", "palette": TONES, "legend": False, "element": "step", "bins": 50}
    sns.histplot(rows, x="score", ax=first, stat="density", common_norm=False, **look)
    sns.scatterplot(x=predicted, y=observed, ax=third, color=TONES["_both"])
    first.set(xlabel="score", ylabel="density")
    second.set(xlabel="false positive rate", ylabel="true positive rate")
    third.set(xlabel="predicted probability of forget", ylabel="observed share")
    fourth.set(xlabel="share of the forget set", ylabel="score")
    return first.figure
