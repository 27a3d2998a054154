"""Training diagnostics of a score: its distribution by domain, ROC, calibration, sorted scores."""

from pathlib import Path
from typing import Any

OF = "cell"
READS = ["scores"]


def draw(grid: dict[str, Any], scores: Path) -> Any:
    """Draw four panels of the scores that ``grid`` names (``dataset, model, seed, selector``); two
    say so where retain texts have no score."""
    import numpy as np
    import pandas as pd
    import seaborn as sns
    from sklearn.metrics import roc_curve

    from mamushi.evidence import diagnostics
    from mamushi.evidence.calibration import read_scores
    from mamushi.figures.style import TONES, lines
    from mamushi.io.domains import DOMAINS
    from mamushi.io.names import label

    read = read_scores(scores)
    numbers = diagnostics.diagnose(read)
    rows = pd.DataFrame({"score": read.score, "domain": np.where(read.forget, *DOMAINS)})
    means = rows.groupby("domain").score.mean().dropna()
    forget = np.sort(read.score[read.forget])[::-1]
    share = (np.arange(len(forget)) + 0.5) / len(forget)
    titles = ["(a) scores", "(b) ROC: no retain scores", "(c) calibration: no retain scores"]
    titles.append("(d) mean {forget_mean:.2f}, sd {forget_sd:.2f}, ties {ties} of {n_forget:,}")
    even: tuple[Any, ...] = ("_reference", [0, 1], [0, 1])
    rates, shares = [even], [even]
    if not np.isnan(read.score).any():
        titles[:3] = ["(a) $D_F$ = {fisher:.2f}", "(b) AUC {auc:.3f}", "(c) ECE = {ece:.3f}"]
        rates.append(("_both", *roc_curve(read.forget, read.score)[:2]))
        shares.append(("_both", *diagnostics.reliability(read.score, read.forget)[:2]))
    levels = [(name, [mean, mean], [0, 0.1]) for name, mean in means.items()]
    drawings = (levels, rates, shares, [("forget", share, forget)])
    titles = [title.format(**numbers) for title in titles]
    panels = lines(grid, dict(zip(titles, drawings, strict=True)), f": {label(grid['selector'])}")
    first, second, third, fourth = panels.values()
    look = {"hue": "domain", "palette": TONES, "legend": False, "element": "step", "bins": 50}
    sns.histplot(rows, x="score", ax=first, stat="density", common_norm=False, **look)
    for _, predicted, observed in shares[1:]:
        sns.scatterplot(x=predicted, y=observed, ax=third, color=TONES["_both"])
    first.set(xlabel="score", ylabel="density")
    second.set(xlabel="false positive rate", ylabel="true positive rate")
    third.set(xlabel="predicted probability of forget", ylabel="observed share")
    fourth.set(xlabel="share of the forget set", ylabel="score")
    return first.figure
